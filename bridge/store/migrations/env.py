"""Runs the migrations on the connection that the store hands over, in its transaction."""

from __future__ import annotations

from alembic import context

from bridge.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
