"""Where the SQL runs: in one writer thread that groups commits, or in the calling task.

Both take an operation `(Tx) -> T`, run it in a savepoint of its own and return its value once
the transaction is committed. The events of a transaction are delivered before its callers wake.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import outcome
import sqlalchemy as sa
import trio

from bridge.errors import BridgeError
from bridge.model import Event
from bridge.store.dialect import READERS, loses_transaction
from bridge.store.tx import Tx

logger = logging.getLogger(__name__)

T = TypeVar("T")
Write = Callable[[Tx], T]
Read = Callable[[sa.Connection], T]
Deliver = Callable[[Sequence[Event]], None]
Result = outcome.Outcome[Any]

MAX_BATCH = 500
"""Operations that share one commit, at most."""


class Executor(Protocol):
    """Runs operations on the database for the store."""

    async def write(self, operation: Write[T]) -> T:
        """Run it, commit, deliver its events, return its value.

        Raises STORE_UNAVAILABLE when the transaction was lost; nothing of it is stored then,
        or, if the answer to the commit was lost, perhaps all of it.
        """
        ...

    async def read(self, operation: Read[T]) -> T:
        """Run it on one snapshot. Raises STORE_UNAVAILABLE."""
        ...


def unavailable(error: Exception, *, executed: bool | None = None) -> BridgeError:
    """The answer to an operation whose transaction was lost."""
    why = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    return BridgeError(
        "STORE_UNAVAILABLE",
        f"the store could not answer ({why}); retry with the same key",
        retry_after=1,
        executed=executed,
    )


class _Lost(Exception):
    """Raised inside a transaction that cannot go on; its cause is the database's error."""


def _savepointed(tx: Tx, operation: Write[Any]) -> Result:
    """Run one operation so that its failure costs nobody else anything."""
    before = tx.savepoint()
    nested = tx.connection.begin_nested()
    try:
        value = operation(tx)
    except Exception as error:
        if loses_transaction(error):
            raise _Lost from error
        nested.rollback()
        tx.roll_back(before)
        return outcome.Error(error)
    nested.commit()
    return outcome.Value(value)


def transact(
    connection: sa.Connection, operations: Sequence[Write[Any]]
) -> tuple[list[Result], list[Event]]:
    """Run the operations in one transaction; their results in order, and its events.

    If the transaction is lost, each result is STORE_UNAVAILABLE and there are no events.
    """
    try:
        with connection.begin():
            tx = Tx(connection)
            results = [_savepointed(tx, operation) for operation in operations]
            tx.flush()
        return results, tx.events
    except Exception as error:
        cause = error.__cause__ if isinstance(error, _Lost) else error
        assert isinstance(cause, Exception)
        logger.warning("a transaction of %d operations was lost: %s", len(operations), cause)
        # each caller raises its own: a shared exception would gather everyone's tracebacks
        lost: list[Result] = [outcome.Error(unavailable(cause)) for _ in operations]
        return lost, []


# --- in the calling task ---------------------------------------------------------------------


class InlineExecutor:
    """Runs everything where it is called; for `:memory:` and virtual time."""

    def __init__(self, connection: sa.Connection, deliver: Deliver) -> None:
        self._connection = connection
        self._deliver = deliver

    async def write(self, operation: Write[T]) -> T:
        """Run it, commit, deliver its events, return its value."""
        await trio.lowlevel.checkpoint_if_cancelled()
        (result,), events = transact(self._connection, [operation])
        self._deliver(events)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return cast("T", result.unwrap())

    async def read(self, operation: Read[T]) -> T:
        """Run it on the one connection."""
        await trio.lowlevel.checkpoint()
        return _read(self._connection, operation)


def _read(connection: sa.Connection, operation: Read[T]) -> T:
    try:
        with connection.begin():
            return operation(connection)
    except sa.exc.DBAPIError as error:
        raise unavailable(error, executed=None) from error


# --- in threads ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    task: trio.lowlevel.Task
    operation: Write[Any]


class WriterThread:
    """One thread with one connection; what waits together is committed together.

    Order of writing is order of arrival. A caller that is cancelled waits for the commit all
    the same, since its operation may be in it.
    """

    def __init__(self, writer: sa.Engine, readers: sa.Engine, deliver: Deliver) -> None:
        self._writer = writer
        self._readers = readers
        self._deliver_events = deliver
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._limiter = trio.CapacityLimiter(READERS)
        self._closed = False
        self.batches = 0
        """Transactions so far."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the thread; at the end it writes what was handed in, then stops."""
        thread = threading.Thread(target=self._run, name="deskbridge-store", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closed = True
            self._jobs.put(None)
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(thread.join)

    async def write(self, operation: Write[T]) -> T:
        """Hand it to the thread and wait for its commit."""
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise unavailable(RuntimeError("it is closed"), executed=False)
        self._jobs.put(_Job(trio.lowlevel.current_task(), operation))
        value = await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)
        return cast("T", value)

    async def read(self, operation: Read[T]) -> T:
        """Run it in a thread, on a connection that only reads."""

        def run() -> T:
            try:
                with self._readers.connect() as connection:
                    return _read(connection, operation)
            except sa.exc.SQLAlchemyError as error:
                raise unavailable(error) from error

        return await trio.to_thread.run_sync(run, limiter=self._limiter)

    # in the thread

    def _run(self) -> None:
        while True:
            jobs, last = self._take()
            if jobs:
                results, events = self._transact([job.operation for job in jobs])
                self.batches += 1
                self._token.run_sync_soon(self._finish, jobs, results, events)
            if last:
                return

    def _take(self) -> tuple[list[_Job], bool]:
        """Everything that waits, at least one; and whether the end was among it."""
        jobs: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            jobs.append(job)
            if len(jobs) == MAX_BATCH:
                return jobs, False
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, False
        return jobs, True

    def _transact(self, operations: Sequence[Write[Any]]) -> tuple[list[Result], list[Event]]:
        try:
            with self._writer.connect() as connection:
                results, events = transact(connection, operations)
                if any(_is_lost(result) for result in results):
                    connection.invalidate()  # the next transaction gets a fresh one
                return results, events
        except Exception as error:
            logger.warning("the store's connection failed: %s", error)
            return [outcome.Error(unavailable(error)) for _ in operations], []

    # on the Trio thread

    def _finish(
        self, jobs: Sequence[_Job], results: Sequence[Result], events: Sequence[Event]
    ) -> None:
        self._deliver_events(events)
        for job, result in zip(jobs, results, strict=True):
            trio.lowlevel.reschedule(job.task, result)


def _is_lost(result: Result) -> bool:
    return (
        isinstance(result, outcome.Error)
        and isinstance(result.error, BridgeError)
        and result.error.code == "STORE_UNAVAILABLE"
    )
