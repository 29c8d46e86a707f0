"""Lists, counts, events, seats: what is asked of the store."""

from __future__ import annotations

import pytest

from bridge.model import Event, Lane, Priority, State
from bridge.store import Filter, open_store


async def test_a_key_finds_its_action(bench):
    action = await bench.submit(idempotency_key="k")
    assert await bench.store.by_key("me", "k") == action
    assert await bench.store.by_key("me", "K") is None
    assert await bench.store.by_key("you", "k") is None


# --- lists


async def test_a_list_shows_the_newest_first_by_pages(bench):
    ids = [(await bench.submit()).id for _ in range(7)]
    pages = [await bench.store.list_actions(Filter(page=n, per_page=3)) for n in (1, 2, 3, 4)]
    assert [[a.id for a in page.actions] for page in pages] == [
        ids[:3:-1],
        ids[3:0:-1],
        ids[:1],
        [],
    ]
    for n, page in enumerate(pages, 1):
        assert (page.total, page.page, page.per_page) == (7, n, 3)
        assert (page.epoch, page.revision) == (bench.store.epoch, bench.store.last_seq)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(), {"text", "shot", "yours", "held"}),
        (Filter(states=frozenset({State.HELD})), {"held"}),
        (
            Filter(states=frozenset({State.HELD, State.PENDING}), owner="me"),
            {"text", "shot", "held"},
        ),
        (Filter(kinds=frozenset({"screenshot"})), {"shot"}),
        (Filter(owner="you"), {"yours"}),
        (Filter(text="张三"), {"text"}),
        (Filter(text='"quoted\\'), {"shot"}),
        (Filter(text="50%"), {"yours"}),
        (Filter(text="5_%"), set()),
        (Filter(text="HELLO"), {"held"}),
        (Filter(states=frozenset({State.FAILED})), set()),
        (Filter(kinds=frozenset({"screenshot"}), owner="you"), set()),
    ],
)
async def test_a_filter_finds_what_matches(bench, wanted, found):
    made = {
        (await bench.submit(text="to 张三")).id: "text",
        (await bench.submit(kind="screenshot", text='"quoted\\ text"')).id: "shot",
        (await bench.submit(owner="you", text="50% off")).id: "yours",
        (await bench.submit(hold=True, text="hello")).id: "held",
    }
    page = await bench.store.list_actions(wanted)
    assert {made[action.id] for action in page.actions} == found
    assert page.total == len(found)


# --- counts


async def test_counts_follow_every_transition(bench):
    counts = await bench.store.counts()
    assert set(counts.by_state) == set(State)
    assert set(counts.by_state.values()) == {0}
    await bench.submit(priority=Priority.LOW)
    await bench.submit(waited=True, start_by=bench.now + 9)
    await bench.submit(hold=True)
    running = await bench.running(priority=Priority.HIGH)
    counts = await bench.store.counts()
    assert {s: n for s, n in counts.by_state.items() if n} == {
        State.PENDING: 2,
        State.HELD: 1,
        State.RUNNING: 1,
    }
    assert counts.pending_by_priority == {
        Priority.CRITICAL: 0,
        Priority.HIGH: 0,
        Priority.NORMAL: 1,
        Priority.LOW: 1,
    }
    assert counts.waiting == 1
    await bench.store.finish(running.id, bench.fences["me"], State.SUCCEEDED, now=bench.now)
    counts = await bench.store.counts()
    assert (counts.by_state[State.RUNNING], counts.by_state[State.SUCCEEDED]) == (0, 1)


async def test_who_is_ahead(bench):
    last = await bench.submit(priority=Priority.LOW)
    await bench.submit(priority=Priority.LOW)
    assert await bench.store.ahead(last) == 0
    await bench.submit()
    await bench.submit(owner="seat:s0", priority=Priority.CRITICAL)
    await bench.submit(owner="you")
    await bench.submit(hold=True)
    assert await bench.store.ahead(last) == 2


async def test_what_is_unfinished_up_to_a_moment(bench):
    assert (await bench.store.max_ord(), await bench.store.unfinished(["me"], 9)) == (0, 0)
    await bench.running()
    await bench.submit()
    await bench.submit(priority=Priority.CRITICAL)
    await bench.submit(hold=True)
    await bench.submit(owner="seat:s0")
    await bench.submit(owner="you")
    upto = await bench.store.max_ord()
    await bench.submit()
    assert await bench.store.unfinished(["me", "seat:s0"], upto) == 3
    assert await bench.store.unfinished(["me"], upto) == 2


# --- events


async def test_events_are_numbered_without_a_hole_and_told_in_order(bench):
    action = await bench.running()
    await bench.store.finish(action.id, bench.fences["me"], State.SUCCEEDED, now=bench.now + 5)
    assert [e.seq for e in bench.told] == [1, 2, 3]
    assert bench.store.last_seq == 3
    assert await bench.store.events_since(0, 99) == bench.told
    first, *_, last = bench.told
    assert (first.seat, first.owner, first.action) == ("s0", "me", action.id)
    assert (first.ts, last.ts, first.trace_id) == (bench.now, bench.now + 5, "trace")
    assert first.data["kind"] == "send_text"
    assert [e.data["state"] for e in bench.told] == ["pending", "running", "succeeded"]
    assert all("hello" not in str(e.data) for e in bench.told)


async def test_events_can_be_read_on_from_anywhere(bench):
    for _ in range(5):
        await bench.submit()
    assert [e.seq for e in await bench.store.events_since(2, 2)] == [3, 4]
    assert await bench.store.events_since(5, 2) == []
    assert await bench.store.oldest_seq() == 1


async def test_free_events_are_numbered_with_the_others(bench):
    assert await bench.store.oldest_seq() is None
    await bench.submit()
    given = [
        Event(0, 7, "app.started", "s0", "seat:s0", data={"pid": 5}, trace_id="t"),
        Event(0, 8, "login.changed", "s0", "seat:s0"),
    ]
    stored = await bench.store.emit(given)
    assert [e.seq for e in stored] == [2, 3]
    assert bench.told[1:] == stored
    assert await bench.store.events_since(1, 9) == stored
    assert [(e.ts, e.type, e.data) for e in stored] == [(e.ts, e.type, e.data) for e in given]


async def test_a_failing_observer_changes_nothing(bench, monkeypatch):
    def fail(events: object) -> None:
        raise RuntimeError("seen in a test")

    monkeypatch.setattr(bench.store, "_on_commit", fail)
    action = await bench.submit()
    assert (await bench.store.get(action.id), bench.store.last_seq) == (action, 1)


# --- seats, and what outlives a restart


async def test_a_seat_remembers_its_last_account(bench):
    assert await bench.store.seat_account("s0") is None
    await bench.store.set_seat_account("s0", "alice", 5)
    await bench.store.set_seat_account("s1", "bob", 5)
    await bench.store.set_seat_account("s0", "张三", 6)
    assert await bench.store.seat_account("s0") == "张三"
    assert await bench.store.seat_account("s1") == "bob"


async def test_everything_is_there_after_a_restart(reopen):
    async with reopen() as before:
        action = await before.running(idempotency_key="k", text="a 🎉")
        waiting = await before.submit(hold=True)
        counts = await before.store.counts()
        await before.store.set_seat_account("s0", "me", 1)
    async with reopen() as after:
        assert (after.store.epoch, after.store.last_seq) == (before.store.epoch, 3)
        assert await after.store.get(action.id) == action
        assert await after.store.get(waiting.id) == waiting
        assert await after.store.counts() == counts
        assert await after.store.events_since(0, 9) == before.told
        assert await after.store.seat_account("s0") == "me"
        assert await after.fence() == 2
        assert await after.candidates(Lane("me")) == []


async def test_two_stores_have_two_epochs(tmp_path):
    epochs = set()
    for name in ("one.db", "two.db"):
        async with open_store(tmp_path / name, on_commit=lambda events: None) as store:
            epochs.add(store.epoch)
    assert len(epochs) == 2
