"""What is only read: one connection, one snapshot."""

from __future__ import annotations

from collections import Counter

import sqlalchemy as sa

from bridge.core_types import Filter, Page
from bridge.model import Action, Event, Priority, State
from bridge.store import queries, rows
from bridge.store.values import Counts


def get(connection: sa.Connection, id: str) -> Action | None:
    """The action with this id."""
    row = connection.execute(queries.ACTION, {"b_id": id}).first()
    return None if row is None else rows.to_action(row)


def by_key(connection: sa.Connection, owner: str, key: str) -> Action | None:
    """The action that holds this key of this owner."""
    row = connection.execute(queries.BY_KEY, {"b_owner": owner, "b_key": key}).first()
    return None if row is None else rows.to_action(row)


def list_actions(connection: sa.Connection, wanted: Filter) -> Page:
    """One page, newest first, with the store's state of the same moment."""
    store = connection.execute(queries.STORE_ROW).one()
    found = connection.execute(queries.page(wanted))
    return Page(
        actions=[rows.to_action(row) for row in found],
        total=_total(connection, wanted),
        page=wanted.page,
        per_page=wanted.per_page,
        epoch=store.epoch,
        revision=store.seq,
    )


def _total(connection: sa.Connection, wanted: Filter) -> int:
    """How many actions match; the tally knows when only states are asked for."""
    if wanted.kinds or wanted.text or wanted.owner is not None:
        return int(connection.execute(queries.total(wanted)).scalar_one())
    stored = connection.execute(queries.TALLY)
    states = wanted.states or frozenset(State)
    return sum(int(row.amount) for row in stored if row.state in states)


def counts(connection: sa.Connection) -> Counts:
    """How many actions are in each state; every state is named."""
    by_state: Counter[State] = Counter(dict.fromkeys(State, 0))
    pending: Counter[Priority] = Counter(dict.fromkeys(Priority, 0))
    for row in connection.execute(queries.TALLY):
        by_state[State(row.state)] += row.amount
        if row.state == State.PENDING:
            pending[Priority(row.priority)] += row.amount
    waiting = connection.execute(queries.WAITING).scalar_one()
    return Counts(dict(by_state), dict(pending), int(waiting))


def ahead(connection: sa.Connection, action: Action) -> int:
    """How many pending actions of its owner and its seat come before it, ageing aside."""
    owners = [action.owner, f"seat:{action.seat}"]
    parameters = {"b_owners": owners, "b_priority": action.priority, "b_ord": action.ord}
    return int(connection.execute(queries.AHEAD, parameters).scalar_one())


def unfinished(connection: sa.Connection, owners: list[str], upto: int) -> int:
    """How many pending or running actions, CRITICAL ones aside, came no later than `upto`."""
    parameters = {"b_owners": owners, "b_upto": upto}
    return int(connection.execute(queries.UNFINISHED, parameters).scalar_one())


def max_ord(connection: sa.Connection) -> int:
    """The `ord` of the newest action; 0 when there is none."""
    return int(connection.execute(queries.MAX_ORD).scalar() or 0)


def events_since(connection: sa.Connection, seq: int, limit: int) -> list[Event]:
    """Up to `limit` stored events after `seq`, in order."""
    parameters = {"b_seq": seq, "b_limit": limit}
    return [rows.to_event(row) for row in connection.execute(queries.EVENTS_SINCE, parameters)]


def oldest_seq(connection: sa.Connection) -> int | None:
    """The number of the oldest stored event."""
    seq = connection.execute(queries.OLDEST_SEQ).scalar()
    return None if seq is None else int(seq)


def seat_account(connection: sa.Connection, seat: str) -> str | None:
    """The account that was last confirmed at a seat."""
    account = connection.execute(queries.SEAT, {"b_name": seat}).scalar()
    return None if account is None else str(account)
