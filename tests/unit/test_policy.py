"""Properties of the pure policy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bridge.config import Pace
from bridge.model import Candidate, Priority
from bridge.outcome import backoff
from bridge.policy import LastFlow, RateWindow, choose, effective_class, gap_ms, in_order

PACE = Pace()
NOW = 10_000_000

candidates = st.lists(
    st.tuples(st.sampled_from(Priority), st.integers(0, 1_000_000)), min_size=1, max_size=12
).map(
    lambda rows: [
        Candidate(str(n), n, priority, "send_text", {"to": "a", "text": "b"}, NOW - age)
        for n, (priority, age) in enumerate(rows)
    ]
)


@given(candidates)
def test_order_is_by_class_then_arrival(rows):
    ordered = in_order(rows, NOW, PACE)
    keys = [(effective_class(c.priority, NOW - c.created_at, PACE), c.ord) for c in ordered]
    assert keys == sorted(keys)
    assert {c.id for c in ordered} == {c.id for c in rows}


@given(st.sampled_from(Priority), st.integers(0, 10**9))
def test_age_never_makes_critical_and_raises_by_one_at_most(priority, waited):
    counted = effective_class(priority, waited, PACE)
    assert counted in {int(priority), int(priority) - 1}
    assert (counted == Priority.CRITICAL) == (priority is Priority.CRITICAL)


@given(candidates, st.floats(0, 100), st.integers(0, 10_000))
def test_whatever_is_chosen_is_the_first_in_order(rows, now, delay):
    last = LastFlow(now - 1, Priority.NORMAL, delay, "a")
    choice = choose(
        rows,
        now=now,
        now_ms=NOW,
        last=last,
        window=RateWindow(10),
        pace=PACE,
        contact_of=lambda c: c.params["to"],
    )
    first = in_order(rows, NOW, PACE)[0]
    assert choice.id in {first.id, None}
    if choice.id is None:
        assert first.priority is not Priority.CRITICAL
        assert choice.until is not None
        assert choice.until > now


@given(st.lists(st.floats(0, 5), max_size=80), st.integers(1, 12))
def test_no_second_sees_more_starts_than_allowed(pauses, most):
    window, now, starts = RateWindow(most), 0.0, []
    for pause in pauses:
        now = window.free_at(now + pause)
        window.note(now)
        starts.append(now)
    for start in starts:
        assert sum(1 for other in starts if start <= other < start + 1.0 - 1e-6) <= most


def test_explicit_delay_wins_but_not_under_the_minimum():
    pace = Pace(min_gap_ms=500)
    assert gap_ms(LastFlow(0, Priority.CRITICAL, 100, None), None, pace) == 500
    assert gap_ms(LastFlow(0, Priority.NORMAL, 9000, "a"), "a", pace) == 9000


def test_backoff_grows_and_is_bounded():
    assert [backoff(n) for n in (1, 2, 3, 4)] == [5, 10, 20, 40]
    assert backoff(50) == 300
