"""Whether a damaged database is noticed, and a large one does not hold the caller up."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
import trio

from bridge.store import open_store
from bridge.store.health import _quick_check


def ignore(events: object) -> None:
    """Nobody watches."""


async def test_a_sound_store_is_looked_through(tmp_path: Path):
    with trio.fail_after(20):
        async with open_store(tmp_path / "a.db", on_commit=ignore) as store:
            found = await store.health(5)
            assert (found.database, found.epoch) == ("sqlite", store.epoch)
            assert (found.damage, found.whole) == ((), True)


async def test_damage_is_named(tmp_path: Path):
    path = tmp_path / "a.db"
    with trio.fail_after(20):
        async with open_store(path, on_commit=ignore):
            pass
        # Two tables on one page: behind its back, as a bad disk would.
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (a TEXT)")
            connection.execute("CREATE TABLE u (a TEXT)")
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_schema SET rootpage = "
                "(SELECT rootpage FROM sqlite_schema WHERE name = 'u') WHERE name = 't'"
            )
        connection.close()
        async with open_store(path, on_commit=ignore) as store:
            found = await store.health(5)
            assert found.whole
            assert any("2nd reference to page" in line for line in found.damage), found.damage


def test_the_time_is_kept_and_the_connection_stays_usable():
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
        connection.exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) "
            "INSERT INTO t SELECT i, printf('%050d', i) FROM n"
        )
        begun = time.monotonic()
        assert _quick_check(connection, 0.0) is None
        assert time.monotonic() - begun < 1
        assert _quick_check(connection, 60) == ["ok"]
    engine.dispose()


@pytest.mark.parametrize("seconds", [0.0, 5.0])
async def test_in_memory_as_well(seconds: float):
    with trio.fail_after(20):
        async with open_store(":memory:", on_commit=ignore, executor="inline") as store:
            assert (await store.health(seconds)).damage == ()
