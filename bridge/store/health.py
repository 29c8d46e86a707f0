"""Whether the database answers and is whole, in bounded time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bridge.store import queries

_STEPS = 20_000
"""SQLite's own steps between two looks at the clock."""

_MOST = 5
"""Damages that are named."""


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """`damage` is what the database says of itself; `whole` False: it was not looked through."""

    database: str
    epoch: str
    damage: tuple[str, ...]
    whole: bool


def health(connection: sa.Connection, seconds: float) -> StoreHealth:
    """Read the epoch, and on SQLite look the file through for at most `seconds`."""
    epoch = str(connection.execute(queries.STORE_ROW).one().epoch)
    name = connection.dialect.name
    if name != "sqlite":
        return StoreHealth(name, epoch, (), False)
    told = _quick_check(connection, seconds)
    if told is None:
        return StoreHealth(name, epoch, (), False)
    damage = tuple(line for line in told if line != "ok" and not line.startswith("***"))
    return StoreHealth(name, epoch, damage, True)


def _quick_check(connection: sa.Connection, seconds: float) -> list[str] | None:
    """What SQLite says; None when the time was up first."""
    driver: Any = connection.connection.driver_connection
    deadline = time.monotonic() + seconds
    driver.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS)
    try:
        told = connection.exec_driver_sql(f"PRAGMA quick_check({_MOST})").scalars()
        return [line for row in told for line in str(row).splitlines()]
    except sa.exc.OperationalError as error:
        if "interrupted" in str(error.orig):
            return None
        raise
    finally:
        driver.set_progress_handler(None, 0)
