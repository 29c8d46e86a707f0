"""The bridge's own upkeep: due times, deadlines, leavers, recovery, retention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bridge.errors import BridgeError
from bridge.lifecycle import WAITABLE, Actor
from bridge.model import Action, State
from bridge.store import queries
from bridge.store.tx import Tx
from bridge.store.values import Sweep
from bridge.store.work import freed

SWEEP_LIMIT = 200
"""Rows of one sort that a sweep moves; more are left for the next, which is due at once."""

# --- leavers and fast failures


def cancel(tx: Tx, id: str, revision: int | None, now: int, who: str) -> Action:
    """Cancel an action that has not begun; ask a running one to stop before its commit point."""
    action = tx.known(id)
    if revision is not None and revision != action.revision:
        raise BridgeError(
            "STALE_REVISION",
            f"the action is at revision {action.revision}, not {revision}; read it again",
            action_id=id,
        )
    if action.final:
        raise BridgeError("INVALID_STATE", f"the action is {action.state} already", action_id=id)
    if action.state is State.RUNNING:
        return tx.touch(action, cancel_requested=True, revision=action.revision + 1)
    error = BridgeError("CANCELLED", f"cancelled by {who}", executed=False)
    return _end(tx, action, State.CANCELLED, Actor.OPERATOR, now, error, {"by": who})


def leave_waited(tx: Tx, id: str, now: int, error: BridgeError) -> Action:
    """Cancel a waited action that has not begun, since its last waiter left."""
    action = tx.known(id)
    if not action.waited or action.state not in WAITABLE:
        return action
    return _end(tx, action, State.CANCELLED, Actor.CALLER, now, error)


def end_waiting(
    tx: Tx, owners: Sequence[str], state: State, now: int, error: BridgeError
) -> list[Action]:
    """End every waited action of these owners that has not begun, CRITICAL ones aside."""
    waited = tx.actions(queries.WAITED_NOT_CRITICAL, b_owners=list(owners))
    return [_end(tx, action, state, Actor.SWEEP, now, error) for action in waited]


def _end(
    tx: Tx,
    action: Action,
    state: State,
    by: Actor,
    now: int,
    error: BridgeError,
    data: Mapping[str, object] | None = None,
) -> Action:
    """End an action that did nothing. A waited one gives its key free for the next try."""
    told = {**error.to_json(), "executed": False}
    key = freed(action) if action.waited else {}
    return tx.move(action, state, by, now, data, error=told, **key)


# --- due times


def sweep(tx: Tx, now: int, retry_after: int) -> Sweep:
    """Expire, time out, then promote what is due."""
    next_due = _next_due(tx)
    if next_due is None or next_due > now:
        return Sweep((), (), (), next_due)
    expired = [
        _end(tx, action, State.EXPIRED, Actor.SWEEP, now, _expired())
        for statement in queries.DUE_TO_EXPIRE
        for action in tx.actions(statement, b_now=now, b_limit=SWEEP_LIMIT)
    ]
    timed_out = [
        _end(tx, action, State.CANCELLED, Actor.SWEEP, now, _timeout(retry_after))
        for statement in queries.DUE_TO_TIME_OUT
        for action in tx.actions(statement, b_now=now, b_limit=SWEEP_LIMIT)
    ]
    promoted = [
        tx.move(action, State.PENDING, Actor.SWEEP, now, {"promoted": True})
        for action in tx.actions(queries.DUE_TO_START, b_now=now, b_limit=SWEEP_LIMIT)
    ]
    return Sweep(promoted, expired, timed_out, _next_due(tx))


def _expired() -> BridgeError:
    return BridgeError("EXPIRED", "it was not started before it expired", executed=False)


def _timeout(retry_after: int) -> BridgeError:
    return BridgeError(
        "TIMEOUT",
        "it was not started in time and will not be; send it again",
        retry_after=retry_after,
        executed=False,
    )


def _next_due(tx: Tx) -> int | None:
    return min(tx.connection.execute(queries.NEXT_DUE).scalars(), default=None)


# --- recovery


def recover(
    tx: Tx, owners: Sequence[str], fence_of: Mapping[str, int], now: int, upto: int
) -> list[Action]:
    """Settle what an earlier run left, and take over what it was carrying out.

    Nobody waits any more for what came before `upto`, the last event of the earlier run.
    Returns the taken over actions, still running, for the scheduler to judge.
    """
    left = {"b_owners": list(owners), "b_upto": upto}
    restarted = BridgeError(
        "CANCELLED", "the bridge was restarted before this began; send it again", executed=False
    )
    for action in tx.actions(queries.WAITED_BEFORE, **left):
        _end(tx, action, State.CANCELLED, Actor.SWEEP, now, restarted)
    interrupted = BridgeError("CANCELLED", "the bridge was restarted; read it again")
    for action in tx.actions(queries.READS_BEFORE, **left):
        if not _is_current(action, fence_of):
            _end(tx, action, State.CANCELLED, Actor.SWEEP, now, interrupted)
    return [
        tx.touch(action, fence=fence_of[action.owner])
        for action in tx.actions(queries.RUNNING, b_owners=list(owners))
        if not _is_current(action, fence_of)
    ]


def _is_current(action: Action, fence_of: Mapping[str, int]) -> bool:
    return action.state is State.RUNNING and action.fence == fence_of[action.owner]


# --- retention


def vacuum(tx: Tx, now: int, keep_ms: int, limit: int) -> int:
    """Drop finished actions and events older than `keep_ms`; returns how many rows it touched.

    An uncertain action stays until a person has settled it, but its params go.
    """
    before = now - keep_ms
    touched = 0
    for state, statement in queries.OLD_FINISHED.items():
        if state is State.UNCERTAIN:
            continue
        for action in tx.actions(statement, b_before=before, b_limit=limit):
            tx.drop(action)
            touched += 1
    for action in tx.actions(queries.OLD_UNBLANKED, b_before=before, b_limit=limit):
        tx.touch(action, params={}, blanked_at=now)
        touched += 1
    return touched + _drop_events(tx, before, limit)


def _drop_events(tx: Tx, before: int, limit: int) -> int:
    """Drop the oldest events, without a hole in what is left."""
    oldest = tx.connection.execute(queries.OLDEST_EVENTS, {"b_limit": limit}).all()
    old = [row.seq for row in oldest if row.ts < before]
    if not old:
        return 0
    return tx.connection.execute(queries.DROP_EVENTS, {"b_seq": max(old)}).rowcount


# --- seats


def set_seat_account(tx: Tx, seat: str, account: str, now: int) -> None:
    """Remember the account that was last confirmed at a seat."""
    values = {"account": account, "updated_at": now}
    if tx.connection.execute(queries.SET_SEAT, {"b_name": seat, **values}).rowcount == 0:
        tx.connection.execute(queries.NEW_SEAT, {"name": seat, **values})
