"""Taking an action in: replay by key, refusal, capacity, coalescing."""

from __future__ import annotations

import pytest
import trio
from sqlalchemy.exc import IntegrityError

from bridge.config import Limits
from bridge.errors import BridgeError
from bridge.model import Priority, State
from bridge.store import intake


async def test_what_is_accepted_is_stored_as_it_was_given(bench):
    new = bench.new(
        text="张三 🎉\x00 \n",
        idempotency_key="k",
        coalesce_key="c",
        batch_id="b",
        delay_ms=7,
        expires_at=bench.now + 99,
        max_attempts=3,
    )
    submitted = await bench.store.submit(new, now=bench.now, limits=Limits())
    assert submitted.created
    action = await bench.store.get(new.id)
    assert action == submitted.action
    for name in ("id", "seat", "owner", "kind", "params", "request_hash", "priority", "effect"):
        assert getattr(action, name) == getattr(new, name), name
    for name in ("trace_id", "idempotency_key", "coalesce_key", "batch_id", "delay_ms"):
        assert getattr(action, name) == getattr(new, name), name
    assert (action.expires_at, action.max_attempts) == (new.expires_at, 3)
    assert (action.state, action.created_at, action.revision) == (State.PENDING, bench.now, 1)
    assert (action.attempt, action.crashes, action.fence, action.mark) == (0, 0, None, None)


@pytest.mark.parametrize(
    ("changes", "state", "event"),
    [
        ({}, State.PENDING, "action.queued"),
        ({"not_before": 1_000_001}, State.SCHEDULED, "action.scheduled"),
        ({"not_before": 1_000_000}, State.PENDING, "action.queued"),
        ({"hold": True}, State.HELD, "action.held"),
        ({"hold": True, "not_before": 1_000_001}, State.HELD, "action.held"),
    ],
)
async def test_where_a_new_action_lies(bench, changes, state, event):
    action = await bench.submit(**changes)
    assert action.state is state
    assert bench.types() == [event]


# --- keys


async def test_the_same_request_under_the_same_key_is_the_same_action(bench):
    first = await bench.submit(idempotency_key="k")
    second = await bench.store.submit(
        bench.new(idempotency_key="k"), now=bench.now + 5, limits=Limits()
    )
    assert (second.action, second.created) == (first, False)
    assert bench.types() == ["action.queued"]


async def test_another_request_under_the_same_key_is_a_conflict(bench):
    first = await bench.submit(idempotency_key="k")
    with pytest.raises(BridgeError) as caught:
        await bench.submit(idempotency_key="k", text="something else")
    assert caught.value.code == "IDEMPOTENCY_CONFLICT"
    assert caught.value.action_id == first.id
    assert (await bench.store.counts()).by_state[State.PENDING] == 1


@pytest.mark.parametrize("other", ["K", "k ", "ｋ"])
async def test_keys_are_compared_byte_by_byte(bench, other):
    first = await bench.submit(idempotency_key="k")
    second = await bench.submit(idempotency_key=other)
    assert first.id != second.id


async def test_a_key_belongs_to_its_owner(bench):
    first = await bench.submit(idempotency_key="k")
    second = await bench.submit(idempotency_key="k", owner="you", text="another")
    assert first.id != second.id


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.UNCERTAIN])
async def test_a_replay_finds_the_action_whatever_became_of_it(bench, state, problem):
    action = await bench.running(idempotency_key="k")
    error = None if state is State.SUCCEEDED else problem(executed=None)
    done = await bench.store.finish(
        action.id, bench.fences["me"], state, now=bench.now, error=error, free_key=True
    )
    assert await bench.submit(idempotency_key="k") == done


async def test_a_replay_is_answered_in_spite_of_a_refusal_and_of_a_full_store(bench):
    first = await bench.submit(idempotency_key="k")
    refusal = BridgeError("APP_NOT_READY", "not now", executed=False)
    again = await bench.submit(idempotency_key="k", refusal=refusal, limits=Limits(0, 0))
    assert again == first


async def test_an_async_replay_makes_a_waited_action_async(bench):
    await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + 50)
    again = await bench.submit(idempotency_key="k")
    assert (again.waited, again.start_by) == (False, None)
    assert await bench.store.get(again.id) == again
    bench.now += 60
    assert (await bench.store.sweep(bench.now)).timed_out == ()
    assert await bench.candidates() == [again.id]


@pytest.mark.parametrize(("replayed", "kept"), [(80, 80), (20, 50)])
async def test_a_waited_replay_waits_for_the_later_of_both(bench, replayed, kept):
    await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + 50)
    again = await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + replayed)
    assert (again.waited, again.start_by) == (True, bench.now + kept)


async def test_a_waited_replay_leaves_an_async_action_async(bench):
    await bench.submit(idempotency_key="k")
    again = await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + 80)
    assert (again.waited, again.start_by) == (False, None)


async def test_a_running_action_keeps_what_its_caller_asked_for(bench):
    await bench.running(idempotency_key="k", waited=True, start_by=bench.now + 50)
    again = await bench.submit(idempotency_key="k")
    assert (again.state, again.waited) == (State.RUNNING, True)


async def test_fifty_at_once_with_one_key_are_one_action(bench):
    ids: list[str] = []

    async def post() -> None:
        ids.append((await bench.submit(idempotency_key="k")).id)

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(post)
    assert len(ids) == 50
    assert len(set(ids)) == 1
    assert (await bench.store.counts()).by_state[State.PENDING] == 1
    assert bench.types() == ["action.queued"]


# --- refusal and capacity


async def test_a_refused_action_is_not_stored(bench):
    new = bench.new()
    with pytest.raises(BridgeError) as caught:
        await bench.submit(new, refusal=BridgeError("PAUSED", "not now", executed=False))
    assert (caught.value.code, caught.value.executed) == ("PAUSED", False)
    assert bench.types() == []
    with pytest.raises(BridgeError, match="NOT_FOUND"):
        await bench.store.get(new.id)


async def test_a_refusal_is_told_before_a_full_store(bench):
    refusal = BridgeError("PAUSED", "not now", executed=False)
    with pytest.raises(BridgeError, match="PAUSED"):
        await bench.submit(refusal=refusal, limits=Limits(0, 0))


@pytest.mark.parametrize("changes", [{}, {"hold": True}, {"not_before": 2_000_000}])
async def test_all_that_has_not_begun_counts_against_the_store(bench, changes):
    limits = Limits(max_pending=2)
    for _ in range(2):
        await bench.submit(limits=limits, **changes)
    with pytest.raises(BridgeError) as caught:
        await bench.submit(limits=limits)
    assert (caught.value.code, caught.value.retry_after) == ("RATE_LIMITED", 3)
    assert caught.value.executed is False


async def test_only_so_many_callers_may_wait(bench):
    limits = Limits(max_waiting=2)
    for _ in range(2):
        await bench.submit(limits=limits, waited=True, start_by=bench.now + 50)
    with pytest.raises(BridgeError, match="RATE_LIMITED"):
        await bench.submit(limits=limits, waited=True, start_by=bench.now + 50)
    await bench.submit(limits=limits)


async def test_an_action_that_starts_or_ends_frees_its_place_at_once(bench):
    limits = Limits(max_waiting=1, max_pending=1)
    first = await bench.submit(limits=limits, waited=True, start_by=bench.now + 50)
    assert (await bench.claim()).id == first.id
    second = await bench.submit(limits=limits, waited=True, start_by=bench.now + 50)
    await bench.store.cancel(second.id, revision=None, now=bench.now, who="me")
    await bench.submit(limits=limits, waited=True, start_by=bench.now + 50)


async def test_critical_is_exempt_from_the_capacity(bench):
    limits = Limits(0, 0)
    action = await bench.submit(
        limits=limits, priority=Priority.CRITICAL, waited=True, start_by=bench.now + 50
    )
    assert action.state is State.PENDING


async def test_places_taken_in_one_batch_of_writes_are_counted(bench):
    refused = 0

    async def post() -> None:
        nonlocal refused
        try:
            await bench.submit(limits=Limits(max_pending=10))
        except BridgeError as error:
            refused += error.code == "RATE_LIMITED"

    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(post)
    assert refused == 20
    assert (await bench.store.counts()).by_state[State.PENDING] == 10


# --- coalescing


@pytest.mark.parametrize("lies", ["pending", "scheduled"])
async def test_a_newer_intent_replaces_the_older(bench, lies):
    later = {"not_before": bench.now + 500} if lies == "scheduled" else {}
    old = await bench.submit(coalesce_key="like:1", **later)
    other = await bench.submit(coalesce_key="like:2")
    new = await bench.submit(coalesce_key="like:1", text="unlike")
    gone = await bench.store.get(old.id)
    assert gone.state is State.SUPERSEDED
    assert gone.error["code"] == "SUPERSEDED"
    assert gone.error["executed"] is False
    assert (await bench.store.get(other.id)).state is State.PENDING
    assert bench.types(old)[-1] == "action.superseded"
    assert new.not_before == old.not_before
    assert new.state is (State.SCHEDULED if later else State.PENDING)


async def test_an_owner_s_intents_do_not_touch_another_s(bench):
    old = await bench.submit(coalesce_key="c", owner="you")
    await bench.submit(coalesce_key="c")
    assert (await bench.store.get(old.id)).state is State.PENDING


async def test_a_newer_intent_inherits_attempts_and_due_time(bench):
    action = await bench.running(coalesce_key="c")
    due = bench.now + 10_000
    await bench.store.requeue(
        action.id, bench.fences["me"], now=bench.now, not_before=due, counted=True
    )
    new = await bench.submit(coalesce_key="c", text="another", not_before=bench.now + 5)
    assert (new.attempt, new.not_before, new.state) == (1, due, State.SCHEDULED)


async def test_a_held_or_running_or_finished_action_is_not_replaced(bench):
    held = await bench.submit(coalesce_key="c", hold=True)
    running = await bench.running(coalesce_key="c")
    await bench.submit(coalesce_key="c")
    assert (await bench.store.get(held.id)).state is State.HELD
    assert (await bench.store.get(running.id)).state is State.RUNNING


async def test_a_key_taken_behind_our_back_is_a_replay_and_replaces_nothing(bench, monkeypatch):
    """As it happens on a database with several writers, between the look and the insert."""
    first = await bench.submit(idempotency_key="k", coalesce_key="old")
    older = await bench.submit(coalesce_key="c")
    looked = intake._by_key
    answers = [lambda tx, new: None, looked]
    monkeypatch.setattr(intake, "_by_key", lambda tx, new: answers.pop(0)(tx, new))
    again = await bench.submit(idempotency_key="k", coalesce_key="c")
    assert again == first
    assert (await bench.store.get(older.id)).state is State.PENDING
    assert bench.types() == ["action.queued", "action.queued"]
    assert [e.seq for e in await bench.store.events_since(0, 10)] == [1, 2]
    assert (await bench.store.counts()).by_state[State.PENDING] == 2


async def test_an_id_that_is_taken_is_the_database_s_own_error(bench):
    first = await bench.submit()
    with pytest.raises(IntegrityError):
        await bench.submit(id=first.id, idempotency_key="k")
    assert bench.store.last_seq == 1
