"""Taking an action in: its key, its place, what it replaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from sqlalchemy.exc import IntegrityError

from bridge.config import Limits
from bridge.errors import BridgeError
from bridge.lifecycle import WAITABLE, Actor
from bridge.model import Action, NewAction, Priority, State
from bridge.store import queries, rows
from bridge.store.dialect import is_unique_violation
from bridge.store.tx import Tx
from bridge.store.values import Submitted

FULL_RETRY_AFTER = 3


def submit(
    tx: Tx, new: NewAction, now: int, limits: Limits, refusal: BridgeError | None
) -> Submitted:
    """Store a new action, or find the one that was stored under its key.

    A replay is answered even when a new action would be refused. Raises IDEMPOTENCY_CONFLICT,
    `refusal`, or RATE_LIMITED.
    """
    known = _by_key(tx, new)
    if known is not None:
        return Submitted(_replay(tx, known, new), created=False)
    if refusal is not None:
        raise refusal
    if new.priority is not Priority.CRITICAL:
        _check_capacity(tx, new, limits)
    savepoint, nested = tx.savepoint(), tx.connection.begin_nested()
    try:
        action = _insert(tx, new, _supersede_older(tx, new, now), now)
    except IntegrityError as error:
        nested.rollback()
        tx.roll_back(savepoint)
        # another writer's row with this key was committed since we looked
        known = _by_key(tx, new) if is_unique_violation(error) else None
        if known is None:
            raise
        return Submitted(_replay(tx, known, new), created=False)
    nested.commit()
    return Submitted(action, created=True)


def _by_key(tx: Tx, new: NewAction) -> Action | None:
    if new.idempotency_key is None:
        return None
    return tx.action(queries.LOCKED_BY_KEY, b_owner=new.owner, b_key=new.idempotency_key)


def _replay(tx: Tx, known: Action, new: NewAction) -> Action:
    """The stored action, made to fit its new caller while it still waits for its start."""
    if known.request_hash != new.request_hash:
        raise BridgeError(
            "IDEMPOTENCY_CONFLICT",
            "this Idempotency-Key belongs to another request; use a new key for a new request",
            executed=False,
            action_id=known.id,
        )
    if not known.waited or known.state not in WAITABLE:
        return known
    if not new.waited:
        return tx.touch(known, waited=False, start_by=None)
    if (new.start_by or 0) > (known.start_by or 0):
        return tx.touch(known, start_by=new.start_by)
    return known


def _check_capacity(tx: Tx, new: NewAction, limits: Limits) -> None:
    if new.waited:
        waiting = tx.connection.execute(queries.WAITING).scalar_one()
        if waiting >= limits.max_waiting:
            _full(f"{waiting} callers are waiting already")
    stored = tx.unstarted()
    if stored >= limits.max_pending:
        _full(f"{stored} actions are stored already")


def _full(why: str) -> NoReturn:
    raise BridgeError(
        "RATE_LIMITED",
        f"{why}; try again shortly",
        retry_after=FULL_RETRY_AFTER,
        executed=False,
    )


def _supersede_older(tx: Tx, new: NewAction, now: int) -> Sequence[Action]:
    """Replace the older intents of the same key; the last one wins."""
    if new.coalesce_key is None:
        return ()
    older = tx.actions(queries.OLDER_INTENTS, b_owner=new.owner, b_key=new.coalesce_key)
    for action in older:
        error = superseded(action, new.id)
        tx.move(
            action,
            State.SUPERSEDED,
            Actor.CALLER,
            now,
            {"superseded_by": new.id},
            error=error.to_json(),
        )
    return older


def superseded(action: Action, by: str) -> BridgeError:
    """The error of an action that a newer intent replaced."""
    return BridgeError(
        "SUPERSEDED",
        "a newer action with the same purpose replaced this one",
        executed=False,
        action_id=action.id,
        extra={"superseded_by": by},
    )


def _insert(tx: Tx, new: NewAction, older: Sequence[Action], now: int) -> Action:
    due = [at for at in (new.not_before, *(o.not_before for o in older)) if at is not None]
    not_before = max(due, default=None)
    state = State.PENDING
    if new.hold:
        state = State.HELD
    elif not_before is not None and not_before > now:
        state = State.SCHEDULED
    values = rows.new_values(
        new,
        ord=tx.next_seq(),
        state=state,
        attempt=max((o.attempt for o in older), default=0),
        not_before=not_before,
        now=now,
    )
    return tx.add(values, new, now)
