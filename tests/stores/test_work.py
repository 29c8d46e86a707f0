"""A worker's writes: marks, steps, the end of a run, and the fence on each of them."""

from __future__ import annotations

import pytest

from bridge.errors import LostFence
from bridge.lifecycle import InvalidTransition
from bridge.model import State, Step

ENDS = {State.SUCCEEDED, State.FAILED, State.UNCERTAIN, State.CANCELLED}
STEPS = (Step("click", 5, 1.5, True, "1,2"), Step("chord", 6, 0.5, False, "ctrl+v"))


async def test_a_mark_is_kept_and_taken_back(bench):
    action = await bench.running()
    fence = bench.fences["me"]
    marked = await bench.store.set_mark(action.id, fence, {"last": "m9"}, STEPS, bench.now)
    assert (marked.mark, marked.steps) == ({"last": "m9"}, STEPS)
    assert marked == await bench.store.get(action.id)
    withdrawn = await bench.store.withdraw_mark(action.id, fence, bench.now)
    assert (withdrawn.mark, withdrawn.steps) == (None, STEPS)
    assert withdrawn.revision == action.revision
    assert bench.types(action) == ["action.queued", "action.started"]


async def test_a_mark_shows_that_a_cancel_came(bench):
    action = await bench.running()
    await bench.store.cancel(action.id, revision=action.revision, now=bench.now, who="me")
    marked = await bench.store.set_mark(action.id, bench.fences["me"], {}, (), bench.now)
    assert marked.cancel_requested


async def test_steps_replace_those_kept_before(bench):
    action = await bench.running()
    fence = bench.fences["me"]
    await bench.store.save_steps(action.id, fence, STEPS[:1])
    await bench.store.save_steps(action.id, fence, STEPS)
    done = await bench.store.finish(action.id, fence, State.SUCCEEDED, now=bench.now)
    assert done.steps == STEPS


WRITES = {
    "set_mark": lambda s, id, f: s.set_mark(id, f, {}, (), 1),
    "withdraw_mark": lambda s, id, f: s.withdraw_mark(id, f, 1),
    "save_steps": lambda s, id, f: s.save_steps(id, f, STEPS),
    "finish": lambda s, id, f: s.finish(id, f, State.SUCCEEDED, now=1),
    "requeue": lambda s, id, f: s.requeue(id, f, now=1),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("lost", ["another fence", "older generation", "not running", "unknown"])
async def test_a_lost_fence_writes_nothing(bench, write, lost):
    action = await bench.running()
    id, fence = action.id, bench.fences["me"]
    if lost == "another fence":
        fence += 1
    elif lost == "older generation":
        await bench.store.acquire("me", "another worker", bench.now)
    elif lost == "not running":
        await bench.store.finish(id, fence, State.FAILED, now=bench.now)
    else:
        id = "nothing"
    before, seq = await bench.store.get(action.id), bench.store.last_seq
    with pytest.raises(LostFence):
        await WRITES[write](bench.store, id, fence)
    assert await bench.store.get(action.id) == before
    assert bench.store.last_seq == seq


@pytest.mark.parametrize("state", sorted(ENDS))
async def test_a_run_ends_and_tells_so(bench, state, problem):
    action = await bench.running()
    bench.now += 100
    error = None if state is State.SUCCEEDED else problem()
    done = await bench.store.finish(
        action.id,
        bench.fences["me"],
        state,
        now=bench.now,
        result={"message": "m1"} if error is None else None,
        error=error,
        evidence={"picture": "p1"},
        steps=STEPS,
        counted=True,
    )
    assert done == await bench.store.get(action.id)
    assert (done.state, done.finished_at, done.steps) == (state, bench.now, STEPS)
    assert (done.attempt, done.revision) == (1, action.revision + 1)
    assert (done.error, done.evidence) == (error, {"picture": "p1"})
    assert done.result == ({"message": "m1"} if error is None else None)
    assert bench.types(action)[-1] == f"action.{state}"
    assert bench.told[-1].data.get("error") == error


async def test_evidence_of_several_attempts_adds_up(bench):
    action = await bench.running()
    fence = bench.fences["me"]
    await bench.store.requeue(action.id, fence, now=bench.now, evidence={"a": 1, "b": 1})
    await bench.claim()
    done = await bench.store.finish(
        action.id, fence, State.FAILED, now=bench.now, evidence={"b": 2}
    )
    assert done.evidence == {"a": 1, "b": 2}


async def test_a_success_carries_no_error_of_an_earlier_attempt(bench, problem):
    action = await bench.running()
    fence = bench.fences["me"]
    await bench.store.requeue(action.id, fence, now=bench.now, error=problem())
    again = await bench.claim()
    assert again.error == problem()
    done = await bench.store.finish(action.id, fence, State.SUCCEEDED, now=bench.now)
    assert done.error is None


@pytest.mark.parametrize("state", sorted(set(State) - ENDS))
async def test_a_run_ends_in_no_other_state(bench, state):
    action = await bench.running()
    with pytest.raises(InvalidTransition):
        await bench.store.finish(action.id, bench.fences["me"], state, now=bench.now)
    assert await bench.store.get(action.id) == action


# --- keys


@pytest.mark.parametrize(
    ("state", "waited", "executed", "free_key", "freed"),
    [
        (State.FAILED, False, False, True, True),
        (State.FAILED, False, False, False, False),
        (State.FAILED, False, None, True, False),
        (State.FAILED, True, False, True, True),
        (State.CANCELLED, False, False, True, False),
        (State.CANCELLED, True, False, True, True),
        (State.UNCERTAIN, False, None, True, False),
        (State.SUCCEEDED, True, True, True, False),
    ],
)
async def test_whose_key_works_again(bench, problem, state, waited, executed, free_key, freed):
    start_by = bench.now + 50 if waited else None
    action = await bench.running(idempotency_key="k", waited=waited, start_by=start_by)
    done = await bench.store.finish(
        action.id,
        bench.fences["me"],
        state,
        now=bench.now,
        error=problem(executed=executed),
        free_key=free_key,
    )
    assert done.idempotency_key == (None if freed else "k")
    again = await bench.submit(idempotency_key="k")
    assert (again.id != action.id) is freed


# --- coming back


async def test_a_retry_keeps_its_place(bench, problem):
    action = await bench.running()
    await bench.submit()
    back = await bench.store.requeue(
        action.id, bench.fences["me"], now=bench.now, counted=True, error=problem(), steps=STEPS
    )
    assert back == await bench.store.get(action.id)
    assert (back.state, back.ord, back.attempt, back.crashes) == (
        State.PENDING,
        action.ord,
        1,
        0,
    )
    assert (back.fence, back.mark, back.finished_at) == (None, None, None)
    assert (back.error, back.steps) == (problem(), STEPS)
    assert bench.types(action)[-1] == "action.retrying"
    assert (await bench.claim()).id == action.id


async def test_crashes_are_counted_apart(bench):
    action = await bench.running()
    back = await bench.store.requeue(action.id, bench.fences["me"], now=bench.now, crashed=True)
    assert (back.attempt, back.crashes) == (0, 1)


@pytest.mark.parametrize(("ahead", "state"), [(1, State.SCHEDULED), (0, State.PENDING)])
async def test_a_retry_waits_until_it_is_due(bench, ahead, state):
    action = await bench.running()
    back = await bench.store.requeue(
        action.id, bench.fences["me"], now=bench.now, not_before=bench.now + ahead
    )
    assert back.state is state


async def test_a_mark_can_stay_with_a_retry(bench):
    action = await bench.running()
    fence = bench.fences["me"]
    await bench.store.set_mark(action.id, fence, {"last": 1}, (), bench.now)
    back = await bench.store.requeue(action.id, fence, now=bench.now, clear_mark=False)
    assert back.mark == {"last": 1}


@pytest.mark.parametrize("newer", ["pending", "scheduled", "running", "succeeded", "uncertain"])
async def test_an_older_intent_does_not_come_back(bench, newer, problem):
    old = await bench.running(coalesce_key="c")
    fence = bench.fences["me"]
    not_before = bench.now + 99 if newer == "scheduled" else None
    new = await bench.submit(coalesce_key="c", text="the opposite", not_before=not_before)
    if newer in {"running", "succeeded", "uncertain"}:
        await bench.claim(id=new.id)
    if newer in {"succeeded", "uncertain"}:
        await bench.store.finish(new.id, fence, State(newer), now=bench.now)
    back = await bench.store.requeue(old.id, fence, now=bench.now, error=problem())
    assert back.state is State.SUPERSEDED
    assert back.error["superseded_by"] == new.id
    assert bench.types(old)[-1] == "action.superseded"


@pytest.mark.parametrize("newer", [State.FAILED, State.CANCELLED])
async def test_an_older_intent_comes_back_when_the_newer_did_nothing(bench, newer):
    old = await bench.running(coalesce_key="c")
    fence = bench.fences["me"]
    new = await bench.submit(coalesce_key="c")
    await bench.claim(id=new.id)
    await bench.store.finish(new.id, fence, newer, now=bench.now)
    back = await bench.store.requeue(old.id, fence, now=bench.now)
    assert back.state is State.PENDING


async def test_a_newer_one_comes_back_whatever_the_older_did(bench):
    await bench.submit(coalesce_key="c", hold=True)
    old = await bench.running(coalesce_key="c")
    new = await bench.submit(coalesce_key="c")
    fence = bench.fences["me"]
    await bench.store.finish(old.id, fence, State.SUCCEEDED, now=bench.now)
    await bench.claim(id=new.id)
    back = await bench.store.requeue(new.id, fence, now=bench.now)
    assert back.state is State.PENDING


@pytest.mark.parametrize("waits", [True, False])
async def test_a_failure_says_whether_a_newer_intent_waits(bench, waits, problem):
    old = await bench.running(coalesce_key="c")
    if waits:
        await bench.submit(coalesce_key="c")
    await bench.store.finish(
        old.id, bench.fences["me"], State.FAILED, now=bench.now, error=problem()
    )
    assert bench.told[-1].data["superseded_by_pending"] is waits


async def test_a_cancel_that_came_while_it_ran_is_obeyed_when_it_comes_back(bench, problem):
    action = await bench.running()
    await bench.store.cancel(action.id, revision=None, now=bench.now, who="me")
    back = await bench.store.requeue(action.id, bench.fences["me"], now=bench.now, error=problem())
    assert (back.state, back.error["code"]) == (State.CANCELLED, "CANCELLED")
    assert await bench.claim() is None
