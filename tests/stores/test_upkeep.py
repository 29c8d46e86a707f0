"""Cancelling, leaving, due times, recovery, retention."""

from __future__ import annotations

import pytest

from bridge.errors import BridgeError
from bridge.model import Effect, Event, Lane, Priority, State
from bridge.store import Filter

DAY = 24 * 3600 * 1000


def gone(code: str = "TIMEOUT") -> BridgeError:
    return BridgeError(code, "seen in a test", executed=False)


# --- cancel


@pytest.mark.parametrize("changes", [{}, {"hold": True}, {"not_before": 2_000_000}])
async def test_what_has_not_begun_is_cancelled(bench, changes):
    action = await bench.submit(idempotency_key="k", **changes)
    bench.now += 3
    done = await bench.store.cancel(action.id, revision=1, now=bench.now, who="ops")
    assert done == await bench.store.get(action.id)
    assert (done.state, done.finished_at, done.revision) == (State.CANCELLED, bench.now, 2)
    assert (done.error["code"], done.error["executed"]) == ("CANCELLED", False)
    assert done.idempotency_key == "k"
    assert bench.types(action)[-1] == "action.cancelled"
    assert bench.told[-1].data["by"] == "ops"
    bench.now += 2_000_000
    await bench.store.sweep(bench.now)
    assert await bench.claim() is None


async def test_a_cancelled_waited_action_frees_its_key(bench):
    action = await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + 9)
    await bench.store.cancel(action.id, revision=None, now=bench.now, who="me")
    assert (await bench.submit(idempotency_key="k")).id != action.id


async def test_a_running_action_is_asked_to_stop(bench):
    action = await bench.running()
    told = bench.types()
    flagged = await bench.store.cancel(action.id, revision=action.revision, now=bench.now, who="me")
    assert (flagged.state, flagged.cancel_requested) == (State.RUNNING, True)
    assert flagged.revision == action.revision + 1
    assert flagged == await bench.store.get(action.id)
    assert bench.types() == told
    # the worker's own writes do not go by the revision
    await bench.store.finish(action.id, bench.fences["me"], State.CANCELLED, now=bench.now)


async def test_a_stale_revision_cancels_nothing(bench):
    action = await bench.submit()
    with pytest.raises(BridgeError, match="STALE_REVISION"):
        await bench.store.cancel(action.id, revision=7, now=bench.now, who="me")
    assert await bench.store.get(action.id) == action


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.UNCERTAIN])
async def test_what_has_ended_cannot_be_cancelled(bench, state):
    action = await bench.running()
    done = await bench.store.finish(action.id, bench.fences["me"], state, now=bench.now)
    with pytest.raises(BridgeError, match="INVALID_STATE"):
        await bench.store.cancel(action.id, revision=done.revision, now=bench.now, who="me")


async def test_an_unknown_action_is_not_found(bench):
    with pytest.raises(BridgeError, match="NOT_FOUND"):
        await bench.store.cancel("x", revision=None, now=bench.now, who="me")
    with pytest.raises(BridgeError, match="NOT_FOUND"):
        await bench.store.leave_waited("x", now=bench.now, error=gone())


# --- leavers and fast failures


async def test_a_waited_action_is_cancelled_when_its_waiter_leaves(bench):
    action = await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + 9)
    done = await bench.store.leave_waited(action.id, now=bench.now, error=gone())
    assert (done.state, done.error) == (State.CANCELLED, gone().to_json())
    assert await bench.claim() is None
    assert (await bench.submit(idempotency_key="k")).id != action.id


async def test_a_leaver_changes_nothing_about_an_async_or_begun_action(bench):
    plain = await bench.submit()
    begun = await bench.submit(waited=True, start_by=bench.now + 9, priority=Priority.HIGH)
    begun = await bench.claim(id=begun.id)
    for action in (plain, begun):
        assert await bench.store.leave_waited(action.id, now=bench.now, error=gone()) == action


async def test_waited_actions_fail_fast_and_no_others_do(bench):
    waits = {"waited": True, "start_by": bench.now + 9}
    failing = [await bench.submit(idempotency_key=f"k{i}", **waits) for i in range(3)]
    spared = [
        await bench.submit(priority=Priority.CRITICAL, **waits),
        await bench.submit(owner="you", **waits),
        await bench.submit(),
    ]
    failed = await bench.store.fail_waiting(
        ["me", "seat:s0"], now=bench.now, error=gone("APP_NOT_READY")
    )
    assert [action.id for action in failed] == [action.id for action in failing]
    for action in failed:
        assert (action.state, action.error["executed"]) == (State.FAILED, False)
        assert action.error["code"] == "APP_NOT_READY"
        assert action.idempotency_key is None
        assert bench.types(action)[-1] == "action.failed"
    for action in spared:
        assert await bench.store.get(action.id) == action


# --- sweep


async def test_a_sweep_with_nothing_due_says_when_it_will_be(bench):
    assert await bench.store.sweep(bench.now) == await bench.store.sweep(bench.now)
    assert (await bench.store.sweep(bench.now)).next_due is None
    await bench.submit(expires_at=bench.now + 30)
    assert (await bench.store.sweep(bench.now)).next_due == bench.now + 30
    await bench.submit(waited=True, start_by=bench.now + 20)
    assert (await bench.store.sweep(bench.now)).next_due == bench.now + 20
    await bench.submit(not_before=bench.now + 10)
    assert (await bench.store.sweep(bench.now)).next_due == bench.now + 10


async def test_a_scheduled_action_becomes_pending_when_it_is_due(bench):
    action = await bench.submit(not_before=bench.now + 10)
    bench.now += 9
    assert (await bench.store.sweep(bench.now)).promoted == ()
    assert await bench.claim() is None
    bench.now += 1
    swept = await bench.store.sweep(bench.now)
    assert [a.id for a in swept.promoted] == [action.id]
    assert bench.types(action)[-1] == "action.queued"
    assert bench.told[-1].data["promoted"] is True
    assert (await bench.claim()).id == action.id


@pytest.mark.parametrize("changes", [{}, {"hold": True}, {"not_before": 2_000_000}])
async def test_what_has_not_begun_expires(bench, changes):
    action = await bench.submit(expires_at=bench.now + 10, **changes)
    bench.now += 10
    (expired,) = (await bench.store.sweep(bench.now)).expired
    assert (expired.id, expired.state) == (action.id, State.EXPIRED)
    assert (expired.error["code"], expired.error["executed"]) == ("EXPIRED", False)


async def test_what_is_due_and_expired_at_once_expires(bench):
    await bench.submit(not_before=bench.now + 5, expires_at=bench.now + 5)
    bench.now += 5
    swept = await bench.store.sweep(bench.now)
    assert (len(swept.expired), len(swept.promoted)) == (1, 0)


async def test_what_runs_or_has_ended_is_not_swept(bench):
    running = await bench.running(expires_at=bench.now + 5, waited=True, start_by=bench.now + 5)
    bench.now += 10
    swept = await bench.store.sweep(bench.now)
    assert (swept.expired, swept.timed_out, swept.next_due) == ((), (), None)
    assert await bench.store.get(running.id) == running


@pytest.mark.parametrize("changes", [{}, {"not_before": 2_000_000}])
async def test_a_waited_action_that_was_not_started_in_time_never_starts(bench, changes):
    action = await bench.submit(
        idempotency_key="k", waited=True, start_by=bench.now + 10, **changes
    )
    bench.now += 10
    (late,) = (await bench.store.sweep(bench.now, retry_after=4)).timed_out
    assert (late.id, late.state) == (action.id, State.CANCELLED)
    assert (late.error["code"], late.error["retry_after"]) == ("TIMEOUT", 4)
    assert late.error["executed"] is False
    bench.now += 5_000_000
    await bench.store.sweep(bench.now)
    assert await bench.claim() is None
    assert (await bench.submit(idempotency_key="k")).id != action.id


async def test_a_sweep_leaves_the_rest_of_many_for_the_next(bench, monkeypatch):
    monkeypatch.setattr("bridge.store.upkeep.SWEEP_LIMIT", 2)
    for _ in range(5):
        await bench.submit(not_before=bench.now + 10)
    bench.now += 20
    moved = []
    for _ in range(3):
        swept = await bench.store.sweep(bench.now)
        moved.append(len(swept.promoted))
    assert moved == [2, 2, 1]
    assert swept.next_due is None


async def test_a_sweep_is_of_every_owner(bench):
    await bench.submit(owner="nobody here", expires_at=bench.now + 1)
    assert len((await bench.store.sweep(bench.now + 1)).expired) == 1


# --- recovery: what a restart finds


async def test_a_restart_cancels_what_somebody_waited_for(reopen):
    async with reopen() as before:
        waits = {"waited": True, "start_by": before.now + 9}
        waited = await before.submit(idempotency_key="k", **waits)
        later = await before.submit(not_before=before.now + 5, **waits)
        other = await before.submit(owner="you", **waits)
        plain = await before.submit()
    async with reopen() as after:
        fence = await after.fence()
        assert await after.store.recover(["me"], {"me": fence}, after.now) == []
        for action in (waited, later):
            done = await after.store.get(action.id)
            assert (done.state, done.error["executed"]) == (State.CANCELLED, False)
        for action in (other, plain):
            assert await after.store.get(action.id) == action
        assert (await after.submit(idempotency_key="k")).id != waited.id


async def test_a_restart_cancels_reads(reopen):
    async with reopen() as before:
        pending = await before.submit(effect=Effect.READ)
        running = await before.running(effect=Effect.READ, priority=Priority.HIGH)
    async with reopen() as after:
        fence = await after.fence()
        assert await after.store.recover(["me"], {"me": fence}, after.now) == []
        for action in (pending, running):
            assert (await after.store.get(action.id)).state is State.CANCELLED


async def test_a_restart_takes_over_what_ran(reopen):
    async with reopen() as before:
        action = await before.running()
        marked = await before.store.set_mark(action.id, 1, {"last": 1}, (), before.now)
        other = await before.running(owner="you")
    async with reopen() as after:
        fence = await after.fence()
        (taken,) = await after.store.recover(["me"], {"me": fence}, after.now)
        assert (taken.id, taken.state, taken.mark) == (action.id, State.RUNNING, marked.mark)
        assert taken.fence == fence != action.fence
        assert (await after.store.get(other.id)).fence == 1
        assert after.told == []
        await after.store.requeue(action.id, fence, now=after.now, crashed=True)


async def test_recovery_leaves_alone_what_came_since_the_start(bench):
    waited = await bench.submit(waited=True, start_by=bench.now + 9)
    read = await bench.submit(effect=Effect.READ)
    running = await bench.running(priority=Priority.HIGH)
    assert await bench.store.recover(["me"], bench.fences, bench.now) == []
    for action in (waited, read, running):
        assert await bench.store.get(action.id) == action


# --- retention


async def test_what_ended_long_ago_goes_with_its_events(bench):
    old = await bench.running()
    await bench.store.finish(old.id, bench.fences["me"], State.SUCCEEDED, now=bench.now)
    bench.now += 7 * DAY
    waiting = await bench.submit()
    assert await bench.store.vacuum(bench.now) == 0
    bench.now += 1
    assert await bench.store.vacuum(bench.now) == 1 + 3
    with pytest.raises(BridgeError, match="NOT_FOUND"):
        await bench.store.get(old.id)
    assert await bench.store.get(waiting.id) == waiting
    assert await bench.store.oldest_seq() == waiting.ord
    counts = await bench.store.counts()
    assert (counts.by_state[State.SUCCEEDED], counts.by_state[State.PENDING]) == (0, 1)


async def test_what_is_uncertain_stays_without_its_params(bench):
    action = await bench.running()
    await bench.store.finish(action.id, bench.fences["me"], State.UNCERTAIN, now=bench.now)
    bench.now += 8 * DAY
    await bench.store.vacuum(bench.now)
    kept = await bench.store.get(action.id)
    assert (kept.state, kept.params) == (State.UNCERTAIN, {})
    assert await bench.store.vacuum(bench.now) == 0


async def test_a_vacuum_is_bounded(bench):
    for _ in range(5):
        action = await bench.running()
        await bench.store.finish(action.id, bench.fences["me"], State.FAILED, now=bench.now)
    bench.now += 8 * DAY
    touched = []
    while not touched or touched[-1]:
        touched.append(await bench.store.vacuum(bench.now, limit=4))
    assert touched == [4 + 4, 1 + 4, 4, 3, 0]


async def test_an_event_from_a_clock_set_ahead_makes_no_hole(bench):
    def event(ts: int) -> Event:
        return Event(0, ts, "app.started", "s0", "seat:s0")

    await bench.store.emit([event(1), event(300 * DAY), event(2), event(20 * DAY)])
    await bench.store.vacuum(20 * DAY)
    assert [e.ts for e in await bench.store.events_since(0, 9)] == [20 * DAY]


async def test_an_old_key_goes_with_its_row(bench):
    action = await bench.running(idempotency_key="k")
    await bench.store.finish(action.id, bench.fences["me"], State.SUCCEEDED, now=bench.now)
    bench.now += 8 * DAY
    await bench.store.vacuum(bench.now)
    assert (await bench.submit(idempotency_key="k")).id != action.id
    assert (await bench.store.list_actions(Filter())).total == 1
    assert (await bench.claim(Lane("me"))) is not None
