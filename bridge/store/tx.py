"""One write transaction as its operations see it: rows, numbered events, the tally.

Events and the tally are gathered and written once, before the commit, however many operations
share the transaction. The counter is read, and locked, by the first operation that has an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from bridge import lifecycle
from bridge.errors import BridgeError, LostFence
from bridge.lifecycle import Actor
from bridge.model import FINAL, Action, Event, Json, NewAction, Priority, State
from bridge.store import queries, rows

Tally = Counter[tuple[State, Priority]]


@dataclass(frozen=True, slots=True)
class Savepoint:
    """Where the gathered things stood before an operation began."""

    base: int | None
    given: int
    events: int
    changes: Tally


class Tx:
    """A transaction that is open for writing."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.events: list[Event] = []
        """Gathered so far, in the order of their numbers."""
        self._base: int | None = None
        """The stored counter; None until it was read, and thereby locked."""
        self._given = 0
        """How many numbers after it were given out."""
        self._changes: Tally = Counter()
        """What this transaction adds to the tally."""

    # --- reading

    def one(self, statement: sa.Executable, **parameters: Any) -> sa.Row[Any] | None:
        """The first row."""
        return self.connection.execute(statement, parameters).first()

    def action(self, statement: sa.Executable, **parameters: Any) -> Action | None:
        """The first row as an action."""
        row = self.one(statement, **parameters)
        return None if row is None else rows.to_action(row)

    def actions(self, statement: sa.Executable, **parameters: Any) -> list[Action]:
        """All rows as actions."""
        found = self.connection.execute(statement, parameters)
        return [rows.to_action(row) for row in found]

    def known(self, id: str) -> Action:
        """The action with this id, locked; NOT_FOUND when there is none."""
        action = self.action(queries.LOCKED_ACTION, b_id=id)
        if action is None:
            raise BridgeError("NOT_FOUND", f"there is no action {id}")
        return action

    def mine(self, id: str, fence: int) -> Action:
        """The running action that a worker holds by `fence`; raises LostFence."""
        action = self.action(queries.HELD_BY_WORKER, b_id=id, b_fence=fence)
        if action is None:
            raise LostFence(f"action {id} is not run under lease generation {fence}")
        return action

    def unstarted(self) -> int:
        """How many stored actions have not begun."""
        stored = self.connection.execute(queries.TALLY)
        before = sum(int(row.amount) for row in stored if row.state in lifecycle.UNSTARTED)
        return before + sum(n for (s, _), n in self._changes.items() if s in lifecycle.UNSTARTED)

    # --- writing

    def next_seq(self) -> int:
        """The number of the next event; locks the counter until the end of the transaction."""
        if self._base is None:
            self._base = int(self.connection.execute(queries.COUNTER).scalar_one())
        self._given += 1
        return self._base + self._given

    def add(self, values: Mapping[str, Any], new: NewAction, now: int) -> Action:
        """Insert an action whose `ord` is the number of its first event."""
        state = values["state"]
        rule = lifecycle.check(None, state, Actor.CALLER)
        self.connection.execute(queries.ADD_ACTION, values)
        self._changes[state, new.priority] += 1
        action = self.known(new.id)
        self._tell(action, rule.event, action.ord, now, {})
        return action

    def move(
        self,
        action: Action,
        to: State,
        by: Actor,
        now: int,
        data: Mapping[str, Json] | None = None,
        **changes: Any,
    ) -> Action:
        """Carry out one transition, count it and tell it. `changes` are further columns.

        Raises STALE_REVISION when the row is no longer as `action` says.
        """
        rule = lifecycle.check(action.state, to, by)
        values = {"state": to, "revision": action.revision + 1, **changes}
        values["finished_at"] = now if to in FINAL else None
        self._set(queries.MOVE, action, values, b_revision=action.revision)
        self._changes[action.state, action.priority] -= 1
        self._changes[to, action.priority] += 1
        moved = replace(action, **_fields(values))
        told = dict(data or {})
        if changes.get("error") is not None:
            told["error"] = changes["error"]
        self._tell(moved, rule.event, self.next_seq(), now, told)
        return moved

    def touch(self, action: Action, **changes: Any) -> Action:
        """Change columns without a transition: nothing is counted and nothing is told."""
        self._set(queries.TOUCH, action, changes)
        return replace(action, **_fields(changes))

    def drop(self, action: Action) -> None:
        """Delete a row and take it off the tally."""
        self.connection.execute(queries.DROP_ACTION, {"b_ord": action.ord})
        self._changes[action.state, action.priority] -= 1

    def emit(self, event: Event) -> Event:
        """Number an event that belongs to no transition, and keep it."""
        numbered = replace(event, seq=self.next_seq())
        self.events.append(numbered)
        return numbered

    def _set(
        self, statement: sa.Update, action: Action, values: Mapping[str, Any], **where: Any
    ) -> None:
        done = self.connection.execute(
            statement, {**values, "b_ord": action.ord, "b_state": action.state, **where}
        )
        if done.rowcount != 1:
            raise BridgeError("STALE_REVISION", "the action changed meanwhile", action_id=action.id)

    def _tell(
        self, action: Action, type: str, seq: int, now: int, data: Mapping[str, Json]
    ) -> None:
        about = {
            "kind": action.kind,
            "priority": action.priority.name,
            "state": action.state.value,
            "revision": action.revision,
            "attempt": action.attempt,
        }
        self.events.append(
            Event(
                seq=seq,
                ts=now,
                type=type,
                seat=action.seat,
                owner=action.owner,
                action=action.id,
                data={**about, **data},
                trace_id=action.trace_id,
            )
        )

    # --- its end

    def savepoint(self) -> Savepoint:
        """Remember what is gathered, before an operation that may fail alone."""
        return Savepoint(self._base, self._given, len(self.events), Counter(self._changes))

    def roll_back(self, to: Savepoint) -> None:
        """Forget what was gathered since, and with it a lock that the database let go."""
        self._base, self._given = to.base, to.given
        del self.events[to.events :]
        self._changes = to.changes

    def flush(self) -> None:
        """Write what was gathered; the commit comes next."""
        if self.events:
            self.connection.execute(
                queries.ADD_EVENTS, [rows.event_values(event) for event in self.events]
            )
        if self._base is not None and self._given:
            self.connection.execute(queries.SET_COUNTER, {"b_seq": self._base + self._given})
        changes = [
            {"b_state": state, "b_priority": int(priority), "b_change": change}
            for (state, priority), change in self._changes.items()
            if change
        ]
        if changes:
            self.connection.execute(queries.TALLY_ADD, changes)


_NOT_IN_ACTION = frozenset({"freed_key", "blanked_at"})


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Columns as the members of an Action."""
    fields = {name: value for name, value in values.items() if name not in _NOT_IN_ACTION}
    if "steps" in fields:
        fields["steps"] = rows.steps_of(fields["steps"])
    return fields
