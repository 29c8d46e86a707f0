"""The tables as the program sees them. `migrations/` brings a database to this shape."""

from __future__ import annotations

import sqlalchemy as sa

from bridge.store.dialect import JsonText, Number, Word, big_integer, name_type

metadata = sa.MetaData()

actions = sa.Table(
    "actions",
    metadata,
    sa.Column("ord", big_integer(), primary_key=True, autoincrement=False),
    sa.Column("id", name_type(64), nullable=False),
    sa.Column("seat", name_type(64), nullable=False),
    sa.Column("owner", name_type(191), nullable=False),
    sa.Column("kind", name_type(64), nullable=False),
    sa.Column("params", JsonText(), nullable=False),
    sa.Column("request_hash", name_type(64), nullable=False),
    sa.Column("priority", Number(), nullable=False),
    sa.Column("state", Word(), nullable=False),
    sa.Column("effect", Word(), nullable=False),
    sa.Column("trace_id", name_type(128), nullable=False),
    sa.Column("waited", sa.Boolean(), nullable=False),
    sa.Column("start_by", big_integer()),
    sa.Column("attempt", sa.Integer(), nullable=False),
    sa.Column("max_attempts", sa.Integer(), nullable=False),
    sa.Column("crashes", sa.Integer(), nullable=False),
    sa.Column("idempotency_key", name_type(191)),
    sa.Column("freed_key", name_type(191)),
    sa.Column("coalesce_key", name_type(191)),
    sa.Column("batch_id", name_type(64)),
    sa.Column("delay_ms", big_integer()),
    sa.Column("not_before", big_integer()),
    sa.Column("expires_at", big_integer()),
    sa.Column("created_at", big_integer(), nullable=False),
    sa.Column("started_at", big_integer()),
    sa.Column("finished_at", big_integer()),
    sa.Column("blanked_at", big_integer()),
    sa.Column("revision", big_integer(), nullable=False),
    sa.Column("fence", big_integer()),
    sa.Column("cancel_requested", sa.Boolean(), nullable=False),
    sa.Column("mark", JsonText()),
    sa.Column("steps", JsonText(), nullable=False),
    sa.Column("evidence", JsonText(), nullable=False),
    sa.Column("result", JsonText()),
    sa.Column("error", JsonText()),
    sa.UniqueConstraint("id", name="uq_actions_id"),
    sa.UniqueConstraint("owner", "idempotency_key", name="uq_actions_owner_key"),
)

# The order of a claim: its cost grows neither with history nor with rows that are not yet due.
# The kind at the end lets it pass by kinds that may not start without reading their rows.
sa.Index(
    "ix_actions_claim",
    actions.c.state,
    actions.c.owner,
    actions.c.priority,
    actions.c.ord,
    actions.c.kind,
)

sa.Index("ix_actions_list", actions.c.state, actions.c.ord)


def _partial(name: str, *columns: sa.Column[object], of: sa.Column[object]) -> sa.Index:
    """An index over the rows in which `of` is set, where the database can do that."""
    there = of.is_not(None)
    return sa.Index(name, *columns, sqlite_where=there, postgresql_where=there)


_partial("ix_actions_due", actions.c.state, actions.c.not_before, of=actions.c.not_before)
_partial("ix_actions_expiry", actions.c.state, actions.c.expires_at, of=actions.c.expires_at)
_partial("ix_actions_start_by", actions.c.state, actions.c.start_by, of=actions.c.start_by)
_partial("ix_actions_finished", actions.c.state, actions.c.finished_at, of=actions.c.finished_at)
_partial("ix_actions_coalesce", actions.c.owner, actions.c.coalesce_key, of=actions.c.coalesce_key)

events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", big_integer(), primary_key=True, autoincrement=False),
    sa.Column("ts", big_integer(), nullable=False),
    sa.Column("type", name_type(64), nullable=False),
    sa.Column("seat", name_type(64), nullable=False),
    sa.Column("owner", name_type(191), nullable=False),
    sa.Column("action", name_type(64)),
    sa.Column("data", JsonText(), nullable=False),
    sa.Column("trace_id", name_type(128), nullable=False),
)

# One row: the store's random id and the number of its last event.
store = sa.Table(
    "store",
    metadata,
    sa.Column("one", sa.Integer(), primary_key=True, autoincrement=False),
    sa.Column("epoch", name_type(64), nullable=False),
    sa.Column("seq", big_integer(), nullable=False),
)

# How many actions are in each state and class; kept by every transition, so that neither
# taking in an action nor a dashboard has to count.
tally = sa.Table(
    "tally",
    metadata,
    sa.Column("state", Word(), primary_key=True),
    sa.Column("priority", Number(), primary_key=True, autoincrement=False),
    sa.Column("amount", big_integer(), nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("owner", name_type(191), primary_key=True),
    sa.Column("generation", big_integer(), nullable=False),
    sa.Column("worker", name_type(128), nullable=False),
    sa.Column("acquired_at", big_integer(), nullable=False),
)

seats = sa.Table(
    "seats",
    metadata,
    sa.Column("name", name_type(64), primary_key=True),
    sa.Column("account", name_type(191), nullable=False),
    sa.Column("updated_at", big_integer(), nullable=False),
)
