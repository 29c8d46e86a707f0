"""The store: every question and every change, as one call each.

Times are UTC milliseconds and come from the caller. Every call may raise STORE_UNAVAILABLE.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Literal

import sqlalchemy as sa
import trio

from bridge.config import Limits
from bridge.core_types import Filter, Page
from bridge.errors import BridgeError
from bridge.model import Action, Event, Json, Lane, NewAction, Priority, State, Step
from bridge.store import dialect, intake, queries, reads, upkeep, work
from bridge.store.executors import Executor, InlineExecutor, WriterThread, unavailable
from bridge.store.health import StoreHealth, health
from bridge.store.migrate import migrate
from bridge.store.values import Counts, Submitted, Sweep
from bridge.store.work import Choose

logger = logging.getLogger(__name__)

OnCommit = Callable[[list[Event]], None]

DAY_MS = 24 * 3600 * 1000
RETENTION_MS = 7 * DAY_MS


class Store:
    """The queue on disk. Made by `open_store`.

    `epoch` is the store's random id; `last_seq` the number of the last event delivered.
    """

    def __init__(self, epoch: str, last_seq: int, on_commit: OnCommit) -> None:
        self.epoch = epoch
        self.last_seq = last_seq
        self._seq_at_open = last_seq
        self._on_commit = on_commit
        self._executor: Executor

    def _deliver(self, events: Sequence[Event]) -> None:
        """Hand on the events of a commit; a failing observer changes nothing."""
        if not events:
            return
        self.last_seq = events[-1].seq
        try:
            self._on_commit(list(events))
        except Exception:
            logger.exception("an observer of the store failed")

    # --- taking in

    async def submit(
        self, new: NewAction, *, now: int, limits: Limits, refusal: BridgeError | None = None
    ) -> Submitted:
        """Store a new action, or find the one under its key.

        `refusal` is why a new one may not be accepted just now, if so; a replay is answered all
        the same. Raises IDEMPOTENCY_CONFLICT, `refusal`, or RATE_LIMITED.
        """
        return await self._executor.write(lambda tx: intake.submit(tx, new, now, limits, refusal))

    # --- a worker's writes

    async def acquire(self, owner: str, worker_id: str, now: int) -> int:
        """Begin the next lease generation of an owner and return it: the worker's fence."""
        return await self._executor.write(lambda tx: work.acquire(tx, owner, worker_id, now))

    async def claim(
        self,
        *,
        now: int,
        fence_of: Mapping[str, int],
        lanes: Sequence[Lane],
        choose: Choose,
        upto: int | None = None,
    ) -> Action | None:
        """Start the action whose id `choose` returns, if it returns one.

        `choose` gets the oldest ready action of each class and lane. It is called where the SQL
        runs, which may be another thread, while this call waits; it does no I/O. Raises
        LostFence when the fence for the owner is not the newest.
        """
        return await self._executor.write(
            lambda tx: work.claim(tx, now, fence_of, lanes, choose, upto)
        )

    async def set_mark(
        self, id: str, fence: int, mark: Mapping[str, Json], steps: Sequence[Step], now: int
    ) -> Action:
        """Put the mark of the commit point on disk, before the key. Raises LostFence."""
        del now
        return await self._executor.write(lambda tx: work.set_mark(tx, id, fence, mark, steps))

    async def withdraw_mark(self, id: str, fence: int, now: int) -> Action:
        """Take the mark back, since the key was not handed over. Raises LostFence."""
        del now
        return await self._executor.write(lambda tx: work.withdraw_mark(tx, id, fence))

    async def save_steps(self, id: str, fence: int, steps: Sequence[Step]) -> Action:
        """Keep the steps of this attempt so far, in place of those kept before. LostFence."""
        return await self._executor.write(lambda tx: work.save_steps(tx, id, fence, steps))

    async def finish(
        self,
        id: str,
        fence: int,
        state: State,
        *,
        now: int,
        result: Mapping[str, Json] | None = None,
        error: Mapping[str, Json] | None = None,
        evidence: Mapping[str, Json] | None = None,
        steps: Sequence[Step] = (),
        counted: bool = False,
        free_key: bool = False,
    ) -> Action:
        """Close a running action. Raises LostFence.

        `error` is a `BridgeError.to_json()`. `evidence` adds to what is there, `steps` replace
        what is there. `counted`: this was one of the counted attempts. `free_key`: its key works
        again, if the error says that nothing was executed.
        """
        return await self._executor.write(
            lambda tx: work.finish(
                tx,
                id,
                fence,
                state,
                now,
                result,
                error,
                evidence,
                steps,
                counted=counted,
                free_key=free_key,
            )
        )

    async def requeue(
        self,
        id: str,
        fence: int,
        *,
        now: int,
        not_before: int | None = None,
        counted: bool = False,
        crashed: bool = False,
        error: Mapping[str, Json] | None = None,
        evidence: Mapping[str, Json] | None = None,
        steps: Sequence[Step] = (),
        clear_mark: bool = True,
    ) -> Action:
        """Put a running action back in its place in the order. Raises LostFence.

        It becomes superseded instead when a newer intent of its coalesce key is there, and
        cancelled when that was asked for while it ran.
        """
        return await self._executor.write(
            lambda tx: work.requeue(
                tx,
                id,
                fence,
                now,
                not_before,
                error,
                evidence,
                steps,
                counted=counted,
                crashed=crashed,
                clear_mark=clear_mark,
            )
        )

    # --- upkeep and control

    async def cancel(self, id: str, *, revision: int | None, now: int, who: str) -> Action:
        """Cancel what has not begun; flag what runs. NOT_FOUND, STALE_REVISION, INVALID_STATE."""
        return await self._executor.write(lambda tx: upkeep.cancel(tx, id, revision, now, who))

    async def leave_waited(self, id: str, *, now: int, error: BridgeError) -> Action:
        """Cancel a waited action that has not begun, with `error`; any other is left alone."""
        return await self._executor.write(lambda tx: upkeep.leave_waited(tx, id, now, error))

    async def fail_waiting(
        self, owners: Iterable[str], *, now: int, error: BridgeError
    ) -> list[Action]:
        """Fail every waited action of these owners that has not begun, CRITICAL ones aside."""
        whose = list(owners)
        return await self._executor.write(
            lambda tx: upkeep.end_waiting(tx, whose, State.FAILED, now, error)
        )

    async def cancel_waiting(
        self, owners: Iterable[str], *, now: int, error: BridgeError
    ) -> list[Action]:
        """Cancel them instead, with `error`: nobody will wait for them any more."""
        whose = list(owners)
        return await self._executor.write(
            lambda tx: upkeep.end_waiting(tx, whose, State.CANCELLED, now, error)
        )

    async def sweep(self, now: int, *, retry_after: int = 1) -> Sweep:
        """Expire, time out and promote what is due; of every owner.

        `retry_after` (seconds) is what a timed out caller is told.
        """
        return await self._executor.write(lambda tx: upkeep.sweep(tx, now, retry_after))

    async def recover(
        self, owners: Iterable[str], fence_of: Mapping[str, int], now: int
    ) -> list[Action]:
        """Settle what an earlier run left of these owners; returns what it was running.

        What was accepted since this store was opened is left alone, so it can be called for an
        owner at any time. Those returned are still running, now under the fences given.
        """
        whose, upto = list(owners), self._seq_at_open
        return await self._executor.write(lambda tx: upkeep.recover(tx, whose, fence_of, now, upto))

    async def vacuum(self, now: int, *, keep_ms: int = RETENTION_MS, limit: int = 200) -> int:
        """Drop what finished long ago; returns the rows touched, so call again until 0."""
        return await self._executor.write(lambda tx: upkeep.vacuum(tx, now, keep_ms, limit))

    async def emit(self, events: Sequence[Event]) -> list[Event]:
        """Store events that belong to no action; their `seq` is given here."""
        return await self._executor.write(lambda tx: [tx.emit(event) for event in events])

    async def set_seat_account(self, seat: str, account: str, now: int) -> None:
        """Remember the account that was confirmed at a seat."""
        await self._executor.write(lambda tx: upkeep.set_seat_account(tx, seat, account, now))

    # --- questions

    async def get(self, id: str) -> Action:
        """The action with this id. Raises NOT_FOUND."""
        action = await self._executor.read(lambda connection: reads.get(connection, id))
        if action is None:
            raise BridgeError("NOT_FOUND", f"there is no action {id}")
        return action

    async def by_key(self, owner: str, key: str) -> Action | None:
        """The action that holds this Idempotency-Key of this owner."""
        return await self._executor.read(lambda c: reads.by_key(c, owner, key))

    async def list_actions(self, wanted: Filter) -> Page:
        """One page of the actions that match, newest first."""
        return await self._executor.read(lambda c: reads.list_actions(c, wanted))

    async def counts(self) -> Counts:
        """How many actions there are, by state and class."""
        return await self._executor.read(reads.counts)

    async def ahead(self, action: Action) -> int:
        """How many pending actions come before this one."""
        return await self._executor.read(lambda c: reads.ahead(c, action))

    async def unfinished(self, owners: Iterable[str], upto: int) -> int:
        """How many pending or running actions, CRITICAL ones aside, have an `ord` ≤ `upto`."""
        whose = list(owners)
        return await self._executor.read(lambda c: reads.unfinished(c, whose, upto))

    async def max_ord(self) -> int:
        """The `ord` of the newest action; 0 when there is none."""
        return await self._executor.read(reads.max_ord)

    async def events_since(self, seq: int, limit: int) -> list[Event]:
        """Up to `limit` stored events after `seq`, in order."""
        return await self._executor.read(lambda c: reads.events_since(c, seq, limit))

    async def oldest_seq(self) -> int | None:
        """The number of the oldest stored event; None when there is none."""
        return await self._executor.read(reads.oldest_seq)

    async def seat_account(self, seat: str) -> str | None:
        """The account that was last confirmed at a seat."""
        return await self._executor.read(lambda c: reads.seat_account(c, seat))

    async def health(self, seconds: float) -> StoreHealth:
        """Whether it answers and is whole; looks through it for at most `seconds`."""
        return await self._executor.read(lambda c: health(c, seconds))


def _prepare(connection: sa.Connection) -> tuple[str, int]:
    """Bring the database to this release's shape; its epoch and last seq."""
    with connection.begin():
        migrate(connection)
        row = connection.execute(queries.STORE_ROW).first()
        if row is None:
            epoch = secrets.token_hex(8)
            connection.execute(queries.NEW_STORE_ROW, {"one": 1, "epoch": epoch, "seq": 0})
            connection.execute(
                queries.NEW_TALLY,
                [
                    {"state": state, "priority": priority, "amount": 0}
                    for state in State
                    for priority in Priority
                ],
            )
            return epoch, 0
        return row.epoch, row.seq


def open_store(
    url_or_path: str | Path,
    *,
    on_commit: OnCommit,
    executor: Literal["thread", "inline"] = "thread",
) -> AbstractAsyncContextManager[Store]:
    """Open the database, bring it up to date, and keep it for the context's time.

    Args:
        url_or_path: a file's path, `:memory:` (inline only), or an SQLAlchemy URL.
        on_commit: called on the Trio thread, after each commit, with its events in order.
        executor: `thread` (one writer thread, readers in threads) or `inline`.

    Raises NewerDatabase, or STORE_UNAVAILABLE when it cannot be opened.
    """
    url = dialect.url_of(url_or_path)
    if executor == "inline":
        return _inline(url, on_commit)
    if dialect.in_memory(url):
        raise ValueError("a database in memory has one connection: open it inline")
    return _threaded(url, on_commit)


@asynccontextmanager
async def _inline(url: sa.URL, on_commit: OnCommit) -> AsyncIterator[Store]:
    engine = dialect.write_engine(url)
    try:
        with engine.connect() as connection:
            store = Store(*_prepare(connection), on_commit)
            store._executor = InlineExecutor(connection, store._deliver)
            yield store
    finally:
        engine.dispose()


@asynccontextmanager
async def _threaded(url: sa.URL, on_commit: OnCommit) -> AsyncIterator[Store]:
    writer, readers = dialect.write_engine(url), dialect.read_engine(url)

    def prepare() -> tuple[str, int]:
        try:
            with writer.connect() as connection:
                return _prepare(connection)
        except sa.exc.DBAPIError as error:
            raise unavailable(error, executed=False) from error

    try:
        store = Store(*await trio.to_thread.run_sync(prepare), on_commit)
        thread = WriterThread(writer, readers, store._deliver)
        store._executor = thread
        async with thread.running():
            yield store
    finally:
        readers.dispose()
        writer.dispose()
