"""What a claim is offered, what it starts, and what it costs."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from bridge.errors import LostFence
from bridge.model import Lane, Priority, State


async def test_the_oldest_of_each_class_and_lane_is_offered(bench):
    made = {}
    for owner in ("me", "you", "other"):
        for priority in (Priority.LOW, Priority.CRITICAL, Priority.HIGH):
            for _ in range(2):
                action = await bench.submit(owner=owner, priority=priority)
                made.setdefault((owner, priority), action.id)
    offered = await bench.candidates(Lane("me"), Lane("you"))
    wanted = [id for (owner, _), id in made.items() if owner != "other"]
    assert sorted(offered) == sorted(wanted)


async def test_a_candidate_says_what_the_order_looks_at(bench):
    action = await bench.submit(delay_ms=5, waited=True, start_by=bench.now + 9, text="x")
    seen = []
    await bench.store.claim(
        now=bench.now, fence_of={}, lanes=[Lane("me")], choose=lambda found: seen.extend(found)
    )
    (c,) = seen
    assert (c.id, c.ord, c.priority, c.kind) == (
        action.id,
        action.ord,
        action.priority,
        "send_text",
    )
    assert (c.params, c.created_at, c.delay_ms, c.waited) == (action.params, bench.now, 5, True)


async def test_the_chosen_one_runs_under_the_fence(bench):
    await bench.submit()
    second = await bench.submit(priority=Priority.HIGH)
    bench.now += 7
    started = await bench.claim(id=second.id)
    assert started == await bench.store.get(second.id)
    assert (started.state, started.fence) == (State.RUNNING, bench.fences["me"])
    assert (started.started_at, started.attempt, started.revision) == (bench.now, 0, 2)
    assert bench.types(second) == ["action.queued", "action.started"]


async def test_nothing_is_started_when_nothing_is_chosen(bench):
    action = await bench.submit()
    await bench.fence()
    assert await bench.candidates() == [action.id]
    assert (await bench.store.get(action.id)) == action


async def test_first_in_first_out_within_a_class(bench):
    ids = [(await bench.submit()).id for _ in range(5)]
    assert [(await bench.claim()).id for _ in range(5)] == ids
    assert await bench.claim() is None


@pytest.mark.parametrize(
    "changes",
    [
        {"hold": True},
        {"not_before": 2_000_000},
        {"expires_at": 1_000_000},
        {"waited": True, "start_by": 1_000_000},
        {"owner": "you"},
    ],
    ids=["held", "not due", "expired", "too late", "another owner's"],
)
async def test_what_may_not_start_is_not_offered(bench, changes):
    await bench.submit(**changes)
    ready = await bench.submit()
    assert await bench.candidates() == [ready.id]


async def test_a_start_by_or_expiry_ahead_does_not_hold_it_back(bench):
    action = await bench.submit(waited=True, start_by=bench.now + 1, expires_at=bench.now + 1)
    assert await bench.candidates() == [action.id]


async def test_only_the_kinds_of_the_lane_are_offered(bench):
    await bench.submit()
    shot = await bench.submit(kind="screenshot")
    assert await bench.candidates(Lane("me", frozenset({"screenshot", "x"}))) == [shot.id]
    assert await bench.candidates(Lane("me", frozenset())) == []


async def test_only_those_up_to_a_given_one_are_offered(bench):
    first = await bench.submit()
    await bench.submit(priority=Priority.HIGH)
    assert await bench.candidates(upto=first.ord) == [first.id]
    assert await bench.candidates(upto=first.ord - 1) == []


async def test_two_claims_never_start_the_same(bench):
    action = await bench.submit()
    assert (await bench.claim()).id == action.id
    assert await bench.claim() is None


async def test_an_older_generation_claims_nothing(bench):
    action = await bench.submit()
    await bench.fence()
    await bench.store.acquire("me", "another worker", bench.now)
    with pytest.raises(LostFence):
        await bench.claim()
    assert (await bench.store.get(action.id)).state is State.PENDING


async def test_generations_of_an_owner_count_up_and_are_its_own(bench):
    got = [await bench.store.acquire(owner, "w", 1) for owner in ("me", "me", "you", "me")]
    assert got == [1, 2, 1, 3]


async def test_a_row_that_cannot_be_read_fails_and_blocks_nobody(bench):
    broken, fine = await bench.submit(), await bench.submit()
    await bench.store._executor.write(
        lambda tx: tx.connection.execute(
            text("UPDATE actions SET params = '{oops' WHERE id = :id"), {"id": broken.id}
        )
    )
    assert (await bench.claim()).id == fine.id
    failed = await bench.store.get(broken.id)
    assert (failed.state, failed.error["executed"]) == (State.FAILED, False)


async def test_a_new_attempt_begins_without_the_last_one_s_mark_and_steps(bench, problem):
    action = await bench.running()
    fence = bench.fences["me"]
    await bench.store.set_mark(action.id, fence, {"last": 1}, [], bench.now)
    await bench.store.requeue(action.id, fence, now=bench.now, error=problem(), clear_mark=False)
    again = await bench.claim()
    assert (again.id, again.mark, again.steps) == (action.id, None, ())
