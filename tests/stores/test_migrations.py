"""Databases of every release become those of this one, and lose nothing."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from bridge.config import Limits
from bridge.store import NewerDatabase, dialect, migrate, open_store
from bridge.store.tables import metadata


def revisions() -> list[str]:
    """Oldest first."""
    engine = dialect.write_engine(dialect.url_of(":memory:"))
    with engine.connect() as connection:
        scripts = ScriptDirectory.from_config(migrate._config(connection))
        return [script.revision for script in scripts.walk_revisions()][::-1]


@pytest.fixture
def connection():
    engine = dialect.write_engine(dialect.url_of(":memory:"))
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@pytest.mark.parametrize("start", [None, *revisions()])
def test_every_release_s_database_becomes_this_one_s(connection, start):
    with connection.begin():
        if start is not None:
            command.upgrade(migrate._config(connection), start)
        migrate.migrate(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        indexes = {
            (i["name"], *i["column_names"]) for i in sa.inspect(connection).get_indexes("actions")
        }
        wanted = {
            (i.name, *(c.name for c in i.columns)) for i in metadata.tables["actions"].indexes
        }
        assert wanted <= indexes


def test_nothing_runs_twice(connection):
    with connection.begin():
        migrate.migrate(connection)
        connection.exec_driver_sql("DROP TABLE seats")  # a second run would make it again
        migrate.migrate(connection)
        assert "seats" not in sa.inspect(connection).get_table_names()


async def test_a_newer_release_s_database_is_left_alone(bench, tmp_path):
    path = tmp_path / "newer.db"
    async with open_store(path, on_commit=print) as store:
        await store.submit(bench.new(), now=1, limits=Limits())
    with closing(sqlite3.connect(path)) as outside, outside:
        outside.execute("UPDATE alembic_version SET version_num = 'from the future'")
    with pytest.raises(NewerDatabase, match="from the future"):
        async with open_store(path, on_commit=print):
            pass
    with closing(sqlite3.connect(path)) as outside:
        assert outside.execute("SELECT count(*) FROM actions").fetchone() == (1,)


async def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "queue.db"
    upgrade = command.upgrade

    def half(config, revision) -> None:
        upgrade(config, revision)
        raise RuntimeError("seen in a test")

    monkeypatch.setattr(command, "upgrade", half)
    with pytest.raises(RuntimeError, match="seen in a test"):
        async with open_store(path, on_commit=print):
            pass
    with closing(sqlite3.connect(path)) as outside:
        assert outside.execute("SELECT name FROM sqlite_master").fetchall() == []
    monkeypatch.undo()
    async with open_store(path, on_commit=print) as store:
        assert store.last_seq == 0
