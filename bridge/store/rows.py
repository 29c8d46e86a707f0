"""Between rows and the words of `bridge.model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from bridge.model import Action, Candidate, Effect, Event, Json, NewAction, Priority, State, Step


def steps_of(value: Any) -> Sequence[Step]:
    """Steps from what is stored; none when that cannot be read."""
    return tuple(Step(**step) for step in value) if isinstance(value, list) else ()


def steps_value(steps: Sequence[Step]) -> list[dict[str, Json]]:
    """Steps as they are stored."""
    return [asdict(step) for step in steps]


def to_action(row: sa.Row[Any]) -> Action:
    """An action from its row. Params that cannot be decoded read as none."""
    r = row._mapping
    return Action(
        id=r["id"],
        ord=r["ord"],
        seat=r["seat"],
        owner=r["owner"],
        kind=r["kind"],
        params=r["params"] or {},
        request_hash=r["request_hash"],
        priority=Priority(r["priority"]),
        state=State(r["state"]),
        effect=Effect(r["effect"]),
        trace_id=r["trace_id"],
        waited=r["waited"],
        start_by=r["start_by"],
        attempt=r["attempt"],
        max_attempts=r["max_attempts"],
        crashes=r["crashes"],
        idempotency_key=r["idempotency_key"],
        coalesce_key=r["coalesce_key"],
        batch_id=r["batch_id"],
        delay_ms=r["delay_ms"],
        not_before=r["not_before"],
        expires_at=r["expires_at"],
        created_at=r["created_at"],
        started_at=r["started_at"],
        finished_at=r["finished_at"],
        revision=r["revision"],
        fence=r["fence"],
        cancel_requested=r["cancel_requested"],
        mark=r["mark"],
        steps=steps_of(r["steps"]),
        evidence=r["evidence"] or {},
        result=r["result"],
        error=r["error"],
    )


def new_values(
    new: NewAction,
    *,
    ord: int,
    state: State,
    attempt: int,
    not_before: int | None,
    now: int,
) -> Mapping[str, Any]:
    """The columns of a new action's row."""
    return {
        "ord": ord,
        "id": new.id,
        "seat": new.seat,
        "owner": new.owner,
        "kind": new.kind,
        "params": dict(new.params),
        "request_hash": new.request_hash,
        "priority": int(new.priority),
        "state": state,
        "effect": new.effect,
        "trace_id": new.trace_id,
        "waited": new.waited,
        "start_by": new.start_by if new.waited else None,
        "attempt": attempt,
        "max_attempts": new.max_attempts,
        "crashes": 0,
        "idempotency_key": new.idempotency_key,
        "coalesce_key": new.coalesce_key,
        "batch_id": new.batch_id,
        "delay_ms": new.delay_ms,
        "not_before": not_before,
        "expires_at": new.expires_at,
        "created_at": now,
        "revision": 1,
        "cancel_requested": False,
        "steps": [],
        "evidence": {},
    }


def to_candidate(action: Action) -> Candidate:
    """What the order looks at."""
    return Candidate(
        id=action.id,
        ord=action.ord,
        priority=action.priority,
        kind=action.kind,
        params=action.params,
        created_at=action.created_at,
        delay_ms=action.delay_ms,
        waited=action.waited,
    )


def to_event(row: sa.Row[Any]) -> Event:
    """A stored event."""
    return Event(
        seq=row.seq,
        ts=row.ts,
        type=row.type,
        seat=row.seat,
        owner=row.owner,
        action=row.action,
        data=row.data or {},
        trace_id=row.trace_id,
    )


def event_values(event: Event) -> Mapping[str, Any]:
    """The columns of an event's row."""
    return {
        "seq": event.seq,
        "ts": event.ts,
        "type": event.type,
        "seat": event.seat,
        "owner": event.owner,
        "action": event.action,
        "data": dict(event.data),
        "trace_id": event.trace_id,
    }
