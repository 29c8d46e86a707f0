"""Every statement of the store, by name. Only `tx`, the operations and `reads` run them.

Reads that a write follows lock their rows (`FOR UPDATE`, where a database has it), so that what
they saw still holds when the write comes. Parameters are named; `b_…` are those of a condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam as p
from sqlalchemy import func, select

from bridge.core_types import Filter
from bridge.lifecycle import COALESCED, OUTDATES, UNSTARTED, WAITABLE
from bridge.model import FINAL, Effect, Priority, State
from bridge.store.dialect import encode
from bridge.store.tables import actions, events, leases, seats, store, tally

a = actions.c

# --- the store's own row, tally, events -----------------------------------------------------

COUNTER = select(store.c.seq).with_for_update()
SET_COUNTER = sa.update(store).values(seq=p("b_seq"))
STORE_ROW = select(store.c.epoch, store.c.seq)
NEW_STORE_ROW = sa.insert(store)

TALLY = select(tally.c.state, tally.c.priority, tally.c.amount)
TALLY_ADD = (
    sa.update(tally)
    .where(tally.c.state == p("b_state"), tally.c.priority == p("b_priority"))
    .values(amount=tally.c.amount + p("b_change"))
)
NEW_TALLY = sa.insert(tally)

ADD_EVENTS = sa.insert(events)
EVENTS_SINCE = (
    select(events).where(events.c.seq > p("b_seq")).order_by(events.c.seq).limit(p("b_limit"))
)
OLDEST_SEQ = select(func.min(events.c.seq))
OLDEST_EVENTS = select(events.c.seq, events.c.ts).order_by(events.c.seq).limit(p("b_limit"))
DROP_EVENTS = sa.delete(events).where(events.c.seq <= p("b_seq"))

# --- leases, seats ---------------------------------------------------------------------------

LEASE = select(leases.c.generation).where(leases.c.owner == p("b_owner")).with_for_update()
NEW_LEASE = sa.insert(leases)
SET_LEASE = sa.update(leases).where(leases.c.owner == p("b_owner"))

SEAT = select(seats.c.account).where(seats.c.name == p("b_name"))
NEW_SEAT = sa.insert(seats)
SET_SEAT = sa.update(seats).where(seats.c.name == p("b_name"))

# --- one action ------------------------------------------------------------------------------

ACTION = select(actions).where(a.id == p("b_id"))
LOCKED_ACTION = ACTION.with_for_update()
BY_KEY = select(actions).where(a.owner == p("b_owner"), a.idempotency_key == p("b_key"))
LOCKED_BY_KEY = BY_KEY.with_for_update()

HELD_BY_WORKER = (
    select(actions)
    .join(leases, leases.c.owner == a.owner)
    .where(
        a.id == p("b_id"),
        a.state == State.RUNNING,
        a.fence == p("b_fence"),
        leases.c.generation == p("b_fence"),
    )
    .with_for_update()
)
"""The row a worker runs, if its fence is the row's and still the owner's newest."""

ADD_ACTION = sa.insert(actions)
MOVE = sa.update(actions).where(
    a.ord == p("b_ord"), a.state == p("b_state"), a.revision == p("b_revision")
)
"""The compare-and-set of every transition; the columns are those of its parameters."""
TOUCH = sa.update(actions).where(a.ord == p("b_ord"), a.state == p("b_state"))
"""A change that is no transition: steps, marks, a new waiter."""
DROP_ACTION = sa.delete(actions).where(a.ord == p("b_ord"))

# --- coalescing, capacity --------------------------------------------------------------------


def _of_key(states: Iterable[State]) -> sa.ColumnElement[bool]:
    return sa.and_(
        a.owner == p("b_owner"),
        a.coalesce_key == p("b_key"),
        a.state.in_(sorted(states)),
    )


OLDER_INTENTS = select(actions).where(_of_key(COALESCED)).order_by(a.ord).with_for_update()
NEWER_INTENT = (
    select(a.id, a.state)
    .where(_of_key(OUTDATES), a.ord > p("b_ord"))
    .order_by(a.ord.desc())
    .limit(1)
)
NEWER_PENDING = select(a.id).where(_of_key(COALESCED), a.ord > p("b_ord")).limit(1)

WAITING = select(func.count()).where(a.state.in_(sorted(WAITABLE)), a.start_by.is_not(None))
"""How many callers wait for an action that has not begun; the capacity bounds its cost."""

# --- claim -----------------------------------------------------------------------------------


def _head(priority: Priority, *, kinds: bool, upto: bool) -> sa.Select[Any]:
    statement = select(actions).where(
        a.state == State.PENDING,
        a.owner == p("b_owner"),
        a.priority == priority,
        sa.or_(a.expires_at.is_(None), a.expires_at > p("b_now")),
        sa.or_(a.start_by.is_(None), a.start_by > p("b_now")),
    )
    if kinds:
        statement = statement.where(a.kind.in_(p("b_kinds", expanding=True)))
    if upto:
        statement = statement.where(a.ord <= p("b_upto"))
    return statement.order_by(a.ord).limit(1)


def heads(*, kinds: bool, upto: bool) -> sa.CompoundSelect[Any]:
    """The oldest ready action of each class of one owner (`b_owner`, `b_now`).

    `kinds`: only of those in `b_kinds`; `upto`: only those up to `b_upto`.
    """
    arms = (_head(priority, kinds=kinds, upto=upto).subquery() for priority in Priority)
    return sa.union_all(*(arm.select() for arm in arms))


HEADS = {(k, u): heads(kinds=k, upto=u) for k in (False, True) for u in (False, True)}

# --- sweeps, recovery, retention -------------------------------------------------------------


def due(state: State, column: sa.Column[Any]) -> sa.Select[Any]:
    """Actions in `state` whose time in `column` has come by `b_now`, at most `b_limit`."""
    return (
        select(actions)
        .where(a.state == state, column <= p("b_now"))
        .order_by(column)
        .limit(p("b_limit"))
        .with_for_update()
    )


def _earliest(state: State, column: sa.Column[Any]) -> sa.Select[Any]:
    due_at = column.label("due_at")
    found = select(due_at).where(a.state == state, column.is_not(None)).order_by(column).limit(1)
    return found.subquery().select()


DUE_TO_EXPIRE = tuple(due(state, a.expires_at) for state in sorted(UNSTARTED))
DUE_TO_TIME_OUT = tuple(due(state, a.start_by) for state in sorted(WAITABLE))
DUE_TO_START = due(State.SCHEDULED, a.not_before)
NEXT_DUE = sa.union_all(
    *(_earliest(state, a.expires_at) for state in sorted(UNSTARTED)),
    *(_earliest(state, a.start_by) for state in sorted(WAITABLE)),
    _earliest(State.SCHEDULED, a.not_before),
)
"""When a sweep next has something to do; several times, the smallest counts."""


def _of_owners(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        select(actions)
        .where(a.owner.in_(p("b_owners", expanding=True)), *conditions)
        .order_by(a.ord)
        .with_for_update()
    )


WAITED = _of_owners(a.state.in_(sorted(WAITABLE)), a.start_by.is_not(None), a.waited)
WAITED_NOT_CRITICAL = WAITED.where(a.priority != Priority.CRITICAL)
WAITED_BEFORE = WAITED.where(a.ord <= p("b_upto"))
READS_BEFORE = _of_owners(
    a.state.in_(sorted({*WAITABLE, State.RUNNING})),
    a.effect == Effect.READ,
    a.ord <= p("b_upto"),
)
RUNNING = _of_owners(a.state == State.RUNNING)

OLD_FINISHED = {
    state: (
        select(actions)
        .where(a.state == state, a.finished_at < p("b_before"))
        .order_by(a.finished_at)
        .limit(p("b_limit"))
        .with_for_update()
    )
    for state in sorted(FINAL)
}
OLD_UNBLANKED = OLD_FINISHED[State.UNCERTAIN].where(a.blanked_at.is_(None))

# --- lists and counts ------------------------------------------------------------------------

_ORDINARY = [priority for priority in Priority if priority is not Priority.CRITICAL]

UNFINISHED = select(func.count()).where(
    a.state.in_([State.PENDING, State.RUNNING]),
    a.owner.in_(p("b_owners", expanding=True)),
    a.priority.in_(_ORDINARY),
    a.ord <= p("b_upto"),
)
MAX_ORD = select(func.max(a.ord))
AHEAD = select(func.count()).where(
    a.state == State.PENDING,
    a.owner.in_(p("b_owners", expanding=True)),
    sa.or_(
        a.priority < p("b_priority"),
        sa.and_(a.priority == p("b_priority"), a.ord < p("b_ord")),
    ),
)


def _matching(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if len(wanted.states) == 1:  # an equality goes by the index and needs no sorting
        conditions.append(a.state == next(iter(wanted.states)))
    elif wanted.states:
        conditions.append(a.state.in_(sorted(wanted.states)))
    if wanted.kinds:
        conditions.append(a.kind.in_(sorted(wanted.kinds)))
    if wanted.owner is not None:
        conditions.append(a.owner == wanted.owner)
    if wanted.text:
        as_stored = encode(wanted.text)[1:-1]  # as it stands between the quotes of the JSON
        text = sa.type_coerce(a.params, sa.Text)
        conditions.append(text.icontains(as_stored, autoescape=True))
    return conditions


def page(wanted: Filter) -> sa.Select[Any]:
    """One page of the actions that match, newest first."""
    return (
        select(actions)
        .where(*_matching(wanted))
        .order_by(a.ord.desc())
        .limit(wanted.per_page)
        .offset((wanted.page - 1) * wanted.per_page)
    )


def total(wanted: Filter) -> sa.Select[Any]:
    """How many actions match."""
    return select(func.count()).select_from(actions).where(*_matching(wanted))
