"""A worker's writes: lease, claim, marks, the end of a run. All under the owner's fence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from bridge.errors import BridgeError, LostFence
from bridge.lifecycle import Actor, InvalidTransition
from bridge.model import Action, Candidate, Json, Lane, State, Step
from bridge.store import queries, rows
from bridge.store.intake import superseded
from bridge.store.tx import Tx

ENDS = frozenset({State.SUCCEEDED, State.FAILED, State.UNCERTAIN, State.CANCELLED})
"""How a run can end; going back to the queue, or giving way there, is `requeue`."""

Choose = Callable[[Sequence[Candidate]], str | None]


def acquire(tx: Tx, owner: str, worker_id: str, now: int) -> int:
    """Begin the next lease generation of an owner; older ones write nothing any more."""
    row = tx.one(queries.LEASE, b_owner=owner)
    generation = 1 if row is None else int(row.generation) + 1
    values = {"generation": generation, "worker": worker_id, "acquired_at": now}
    if row is None:
        tx.connection.execute(queries.NEW_LEASE, {"owner": owner, **values})
    else:
        tx.connection.execute(queries.SET_LEASE, {"b_owner": owner, **values})
    return generation


# --- claim


def claim(
    tx: Tx,
    now: int,
    fence_of: Mapping[str, int],
    lanes: Sequence[Lane],
    choose: Choose,
    upto: int | None,
) -> Action | None:
    """Start the action that `choose` picks among the oldest of each class and lane.

    Raises LostFence when the fence for its owner is no longer the newest.
    """
    heads = {head.id: head for lane in lanes for head in _heads(tx, lane, now, upto)}
    id = choose([rows.to_candidate(head) for head in heads.values()])
    if id is None:
        return None
    action = heads[id]
    fence = fence_of[action.owner]
    lease = tx.one(queries.LEASE, b_owner=action.owner)
    if lease is None or lease.generation != fence:
        raise LostFence(f"lease generation {fence} of {action.owner} is over")
    return tx.move(
        action,
        State.RUNNING,
        Actor.WORKER,
        now,
        fence=fence,
        started_at=now,
        cancel_requested=False,
        mark=None,
        steps=[],
    )


def _heads(tx: Tx, lane: Lane, now: int, upto: int | None) -> list[Action]:
    """The oldest of each class. What cannot be read fails, so that it blocks nobody."""
    if lane.kinds is not None and not lane.kinds:
        return []
    statement = queries.HEADS[lane.kinds is not None, upto is not None]
    parameters: dict[str, Any] = {"b_owner": lane.owner, "b_now": now}
    if lane.kinds is not None:
        parameters["b_kinds"] = sorted(lane.kinds)
    if upto is not None:
        parameters["b_upto"] = upto
    while True:
        found = tx.connection.execute(statement, parameters).all()
        broken = [row for row in found if not isinstance(row.params, dict)]
        if not broken:
            return [rows.to_action(row) for row in found]
        for row in broken:
            error = BridgeError("INTERNAL", "the stored params cannot be read", executed=False)
            action = rows.to_action(row)
            tx.move(action, State.FAILED, Actor.SWEEP, now, error=error.to_json())


# --- while it runs


def set_mark(
    tx: Tx, id: str, fence: int, mark: Mapping[str, Json], steps: Sequence[Step]
) -> Action:
    """Put the mark of the commit point on disk, before the key."""
    action = tx.mine(id, fence)
    return tx.touch(action, mark=dict(mark), **_steps(steps))


def withdraw_mark(tx: Tx, id: str, fence: int) -> Action:
    """Take the mark back: the key was not handed over."""
    return tx.touch(tx.mine(id, fence), mark=None)


def save_steps(tx: Tx, id: str, fence: int, steps: Sequence[Step]) -> Action:
    """Keep the steps of this attempt so far."""
    return tx.touch(tx.mine(id, fence), steps=rows.steps_value(steps))


# --- the end of a run


def finish(
    tx: Tx,
    id: str,
    fence: int,
    state: State,
    now: int,
    result: Mapping[str, Json] | None,
    error: Mapping[str, Json] | None,
    evidence: Mapping[str, Json] | None,
    steps: Sequence[Step],
    *,
    counted: bool,
    free_key: bool,
) -> Action:
    """Close a running action."""
    action = tx.mine(id, fence)
    if state not in ENDS:
        raise InvalidTransition(action.state, state, Actor.WORKER)
    changes: dict[str, Any] = {
        "result": None if result is None else dict(result),
        "attempt": action.attempt + counted,
        **_ending(action, error, evidence, steps),
    }
    undone = error is not None and error.get("executed") is False
    if free_key and undone and (state is State.FAILED or action.waited):
        changes |= freed(action)
    data: dict[str, Json] = {}
    if state is State.FAILED:
        data["superseded_by_pending"] = _newer_pending(tx, action)
    return tx.move(action, state, Actor.WORKER, now, data, **changes)


def requeue(
    tx: Tx,
    id: str,
    fence: int,
    now: int,
    not_before: int | None,
    error: Mapping[str, Json] | None,
    evidence: Mapping[str, Json] | None,
    steps: Sequence[Step],
    *,
    counted: bool,
    crashed: bool,
    clear_mark: bool,
) -> Action:
    """Put a running action back in its place, unless a newer intent took that."""
    action = tx.mine(id, fence)
    changes: dict[str, Any] = {
        "attempt": action.attempt + counted,
        "crashes": action.crashes + crashed,
        **_ending(action, error, evidence, steps),
    }
    if clear_mark:
        changes["mark"] = None
    if action.cancel_requested:
        return _cancel_instead(tx, action, now, changes)
    newer = _newer_intent(tx, action)
    if newer is not None:
        changes["error"] = superseded(action, newer).to_json()
        return tx.move(
            action, State.SUPERSEDED, Actor.WORKER, now, {"superseded_by": newer}, **changes
        )
    later = not_before is not None and not_before > now
    state = State.SCHEDULED if later else State.PENDING
    return tx.move(
        action,
        state,
        Actor.WORKER,
        now,
        {"not_before": not_before} if later else {},
        not_before=not_before,
        cancel_requested=False,
        fence=None,
        **changes,
    )


def _cancel_instead(tx: Tx, action: Action, now: int, changes: dict[str, Any]) -> Action:
    """A cancel that came while it ran is obeyed when it comes back; nothing was done."""
    error = BridgeError("CANCELLED", "cancelled while it ran", executed=False)
    changes["error"] = error.to_json()
    if action.waited:
        changes |= freed(action)
    return tx.move(action, State.CANCELLED, Actor.WORKER, now, **changes)


def freed(action: Action) -> dict[str, Any]:
    """The columns that give an action's key free; the old key is remembered."""
    if action.idempotency_key is None:
        return {}
    return {"idempotency_key": None, "freed_key": action.idempotency_key}


def _ending(
    action: Action,
    error: Mapping[str, Json] | None,
    evidence: Mapping[str, Json] | None,
    steps: Sequence[Step],
) -> dict[str, Any]:
    return {
        "error": None if error is None else dict(error),
        "evidence": {**action.evidence, **(evidence or {})},
        **_steps(steps),
    }


def _steps(steps: Sequence[Step]) -> dict[str, Any]:
    """Steps given replace those of this attempt; none given leaves them."""
    return {"steps": rows.steps_value(steps)} if steps else {}


def _newer_intent(tx: Tx, action: Action) -> str | None:
    return _newer(tx, queries.NEWER_INTENT, action)


def _newer_pending(tx: Tx, action: Action) -> bool:
    return _newer(tx, queries.NEWER_PENDING, action) is not None


def _newer(tx: Tx, statement: sa.Select[Any], action: Action) -> str | None:
    if action.coalesce_key is None:
        return None
    row = tx.one(statement, b_owner=action.owner, b_key=action.coalesce_key, b_ord=action.ord)
    return None if row is None else str(row.id)
