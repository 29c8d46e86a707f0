"""The first shape: actions, events, the store's own row, tally, leases, seats."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from bridge.store.dialect import JsonText, Number, Word, big_integer, name_type

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables and their indexes."""
    op.create_table(
        "actions",
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
    op.create_table(
        "events",
        sa.Column("seq", big_integer(), primary_key=True, autoincrement=False),
        sa.Column("ts", big_integer(), nullable=False),
        sa.Column("type", name_type(64), nullable=False),
        sa.Column("seat", name_type(64), nullable=False),
        sa.Column("owner", name_type(191), nullable=False),
        sa.Column("action", name_type(64)),
        sa.Column("data", JsonText(), nullable=False),
        sa.Column("trace_id", name_type(128), nullable=False),
    )
    op.create_table(
        "store",
        sa.Column("one", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("epoch", name_type(64), nullable=False),
        sa.Column("seq", big_integer(), nullable=False),
    )
    op.create_table(
        "tally",
        sa.Column("state", Word(), primary_key=True),
        sa.Column("priority", Number(), primary_key=True, autoincrement=False),
        sa.Column("amount", big_integer(), nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("owner", name_type(191), primary_key=True),
        sa.Column("generation", big_integer(), nullable=False),
        sa.Column("worker", name_type(128), nullable=False),
        sa.Column("acquired_at", big_integer(), nullable=False),
    )
    op.create_table(
        "seats",
        sa.Column("name", name_type(64), primary_key=True),
        sa.Column("account", name_type(191), nullable=False),
        sa.Column("updated_at", big_integer(), nullable=False),
    )
    op.create_index("ix_actions_claim", "actions", ["state", "owner", "priority", "ord", "kind"])
    op.create_index("ix_actions_list", "actions", ["state", "ord"])
    for name, columns, of in (
        ("due", ["state", "not_before"], "not_before"),
        ("expiry", ["state", "expires_at"], "expires_at"),
        ("start_by", ["state", "start_by"], "start_by"),
        ("finished", ["state", "finished_at"], "finished_at"),
        ("coalesce", ["owner", "coalesce_key"], "coalesce_key"),
    ):
        there = sa.text(f"{of} IS NOT NULL")
        op.create_index(
            f"ix_actions_{name}", "actions", columns, sqlite_where=there, postgresql_where=there
        )
