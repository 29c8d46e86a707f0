"""What differs between databases: column types, connections, locks, errors. Nothing else does."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects import mysql
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import StaticPool
from sqlalchemy.types import TypeDecorator

logger = logging.getLogger(__name__)

BUSY_TIMEOUT_MS = 5_000
READERS = 4
"""Connections, and threads, that read at the same time."""


def name_type(length: int) -> sa.types.TypeEngine[str]:
    """Text that compares byte by byte, trailing spaces included."""
    binary = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_nopad_bin")
    return sa.String(length).with_variant(binary, "mysql", "mariadb")


def big_integer() -> sa.types.TypeEngine[int]:
    """A 64-bit integer that can be SQLite's row id."""
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def long_text() -> sa.types.TypeEngine[str]:
    """Text without a length of its own."""
    return sa.Text().with_variant(mysql.LONGTEXT(charset="utf8mb4"), "mysql", "mariadb")


def encode(value: Any) -> str:
    """JSON as it is stored: searchable as written, escaped only where it has to be."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, separators=(",", ":"))
    return text


class Word(TypeDecorator[str]):
    """A member of a string enumeration, stored as its value."""

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Short text everywhere."""
        return dialect.type_descriptor(name_type(16))

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """To the database: drivers know what a str is, but not each of its subclasses."""
        return None if value is None else str(value)


class Number(TypeDecorator[int]):
    """A member of an integer enumeration, stored as its value."""

    impl = sa.SmallInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: sa.Dialect) -> int | None:
        """To the database."""
        return None if value is None else int(value)


class JsonText(TypeDecorator[Any]):
    """JSON in a text column. What cannot be decoded reads as None: one bad row stops nobody."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Long text everywhere."""
        return dialect.type_descriptor(long_text())

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        """To the database; None is NULL."""
        return None if value is None else encode(value)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        """From the database."""
        if value is None:
            return None
        try:
            return json.loads(value)
        except ValueError:
            logger.error("a stored value is not JSON; it reads as nothing")
            return None


def url_of(url_or_path: str | Path) -> sa.URL:
    """A database URL from a URL, a file's path, or `:memory:`."""
    text = str(url_or_path)
    if "://" in text:
        return sa.make_url(text)
    return sa.URL.create("sqlite", database=text)


def database_file(url_or_path: str | Path) -> Path | None:
    """The file of an SQLite database; None for another database. ValueError for no URL."""
    try:
        url = url_of(url_or_path)
    except sa.exc.ArgumentError as error:
        raise ValueError(str(error)) from error
    if url.get_backend_name() != "sqlite" or in_memory(url):
        return None
    return Path(str(url.database)).absolute()


def in_memory(url: sa.URL) -> bool:
    """Whether the database ends with its one connection."""
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def _prepare_sqlite(engine: sa.Engine, *, begin: str, read_only: bool) -> None:
    pragmas = [f"busy_timeout = {BUSY_TIMEOUT_MS}", "foreign_keys = ON"]
    if read_only:
        pragmas.append("query_only = ON")
    elif not in_memory(engine.url):
        pragmas += ["journal_mode = WAL", "synchronous = FULL"]

    @event.listens_for(engine, "connect")
    def connected(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)


def _engine(url: sa.URL, **options: Any) -> sa.Engine:
    """An engine whose errors do not show what people wrote."""
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"check_same_thread": False}
    else:
        options["pool_pre_ping"] = True
    return sa.create_engine(url, hide_parameters=True, **options)


def write_engine(url: sa.URL) -> sa.Engine:
    """One lasting connection whose transactions own the right to write from their beginning.

    A deferred transaction that reads first and writes later is told "locked" in spite of the
    busy timeout, so SQLite's begin as IMMEDIATE.
    """
    if in_memory(url):
        engine = _engine(url, poolclass=StaticPool)
    else:
        engine = _engine(url, pool_size=1, max_overflow=0)
    if url.get_backend_name() == "sqlite":
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE", read_only=False)
    return engine


def read_engine(url: sa.URL) -> sa.Engine:
    """Connections that only read, each transaction from one snapshot."""
    if url.get_backend_name() == "sqlite":
        engine = _engine(url, pool_size=READERS, max_overflow=0)
        _prepare_sqlite(engine, begin="BEGIN", read_only=True)
        return engine
    return _engine(url, pool_size=READERS, max_overflow=0, isolation_level="REPEATABLE READ")


def is_unique_violation(error: sa.exc.IntegrityError) -> bool:
    """Whether a row with this key is there already."""
    original: Any = error.orig
    if getattr(original, "sqlstate", None) is not None:
        return bool(original.sqlstate == "23505")
    if getattr(original, "sqlite_errorname", None) is not None:
        return original.sqlite_errorname in (
            "SQLITE_CONSTRAINT_UNIQUE",
            "SQLITE_CONSTRAINT_PRIMARYKEY",
        )
    return bool(getattr(original, "args", ()) and original.args[0] == 1062)


def loses_transaction(error: Exception) -> bool:
    """Whether the database may have given up the whole transaction with this error.

    A full disk, a lock or an I/O error does; a broken constraint or a bad value costs no more
    than the savepoint.
    """
    if isinstance(error, sa.exc.IntegrityError | sa.exc.DataError | sa.exc.ProgrammingError):
        return False
    return isinstance(error, sa.exc.DBAPIError)
