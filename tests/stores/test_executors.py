"""Group commit, and what a failure costs whom."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing

import pytest
import sqlalchemy as sa
import trio
import trio.testing

from bridge.errors import BridgeError
from bridge.model import Event, Priority, State
from bridge.store import Filter, dialect, open_store


class Gate:
    """An operation that keeps the writer until it is let go, so that others pile up."""

    def __init__(self, bench) -> None:
        self._bench = bench
        self._begun = trio.Event()
        self._go = threading.Event()
        self._token = trio.lowlevel.current_trio_token()

    def _hold(self, tx) -> None:
        self._token.run_sync_soon(self._begun.set)
        if not self._go.wait(10):
            raise TimeoutError

    async def close(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._bench.store._executor.write, self._hold)
        await self._begun.wait()

    def open(self) -> None:
        self._go.set()


async def pile_up(bench, operations) -> int:
    """Run the operations in one batch, in this order; how many transactions it took."""
    gate = Gate(bench)
    before = bench.store._executor.batches
    async with trio.open_nursery() as nursery:
        await gate.close(nursery)
        for operation in operations:
            nursery.start_soon(operation)
            await trio.testing.wait_all_tasks_blocked()
        gate.open()
    return bench.store._executor.batches - before - 1


# --- group commit


async def test_what_waits_together_is_committed_together_in_order_of_arrival(reopen):
    async with reopen() as bench:
        news = [bench.new() for _ in range(40)]

        def post(new):
            return lambda: bench.submit(new)

        assert await pile_up(bench, [post(new) for new in news]) == 1
        rows = [await bench.store.get(new.id) for new in news]
        assert [row.ord for row in rows] == list(range(1, 41))
        assert [e.action for e in bench.told] == [new.id for new in news]


async def test_events_are_told_before_the_callers_wake_and_after_the_commit(tmp_path):
    order = []
    path = tmp_path / "queue.db"

    def told(events) -> None:
        with closing(sqlite3.connect(path)) as outside:
            (seq,) = outside.execute("SELECT max(seq) FROM events").fetchone()
        order.append(("told", events[-1].seq, seq))

    async with open_store(path, on_commit=told) as store:
        for n in (1, 2):
            await store.emit([_event(n)])
            order.append(("awake", n))
    assert order == [("told", 1, 1), ("awake", 1), ("told", 2, 2), ("awake", 2)]


def _event(ts: int) -> Event:
    return Event(0, ts, "app.started", "s0", "seat:s0")


async def test_a_cancelled_caller_still_learns_of_its_commit(reopen):
    """It may be in the transaction already: to give up would be to leave an orphan."""
    async with reopen() as bench:
        outcome = []

        async def post() -> None:
            with trio.CancelScope() as scope:
                scopes.append(scope)
                outcome.append(await bench.submit())

        scopes: list[trio.CancelScope] = []
        gate = Gate(bench)
        async with trio.open_nursery() as nursery:
            await gate.close(nursery)
            nursery.start_soon(post)
            await trio.testing.wait_all_tasks_blocked()
            scopes[0].cancel()
            await trio.testing.wait_all_tasks_blocked()
            assert outcome == []
            gate.open()
        assert [action.state for action in outcome] == [State.PENDING]


async def test_a_caller_cancelled_before_it_asked_writes_nothing(bench):
    with trio.CancelScope() as scope:
        scope.cancel()
        await bench.submit()
    assert bench.types() == []


async def test_closing_writes_what_was_handed_in(reopen):
    done = []
    async with trio.open_nursery() as nursery, reopen() as bench:
        gate = Gate(bench)
        await gate.close(nursery)

        async def post() -> None:
            done.append(await bench.submit())

        nursery.start_soon(post)
        await trio.testing.wait_all_tasks_blocked()
        gate.open()
    async with reopen() as bench:
        assert await bench.store.get(done[0].id) == done[0]


async def test_a_closed_store_says_so(reopen):
    async with reopen() as bench:
        pass
    with pytest.raises(BridgeError) as caught:
        await bench.submit()
    assert (caught.value.code, caught.value.executed) == ("STORE_UNAVAILABLE", False)


# --- savepoints


async def test_one_bad_operation_spoils_no_other(reopen):
    async with reopen() as bench:
        first, twin, last = bench.new(), bench.new(), bench.new()
        errors = []

        def half_done(tx) -> None:
            tx.connection.execute(sa.text("UPDATE actions SET params = '{}'"))
            tx.emit(_event(1))
            tx.next_seq()
            tx._changes[State.PENDING, Priority.NORMAL] += 7
            raise ValueError("seen in a test")

        async def bad() -> None:
            try:
                await bench.store._executor.write(half_done)
            except ValueError as error:
                errors.append(error)

        async def twice() -> None:
            try:
                await bench.submit(bench.new(id=first.id))
            except sa.exc.IntegrityError as error:
                errors.append(error)

        batches = await pile_up(
            bench,
            [
                bad,
                lambda: bench.submit(first),
                twice,
                lambda: bench.submit(twin),
                bad,
                lambda: bench.submit(last),
            ],
        )
        assert (batches, len(errors)) == (1, 3)
        rows = [await bench.store.get(new.id) for new in (first, twin, last)]
        assert [(row.ord, row.params) for row in rows] == [
            (1, first.params),
            (2, twin.params),
            (3, last.params),
        ]
        assert [e.seq for e in await bench.store.events_since(0, 9)] == [1, 2, 3]
        assert (await bench.store.counts()).by_state[State.PENDING] == 3


async def test_a_user_s_error_takes_back_its_own_operation(bench):
    action = await bench.submit()
    seq = bench.store.last_seq

    def fail(tx) -> None:
        tx.emit(_event(1))
        raise BridgeError("INVALID_STATE", "seen in a test")

    with pytest.raises(BridgeError, match="INVALID_STATE"):
        await bench.store._executor.write(fail)
    assert bench.store.last_seq == seq
    assert (await bench.submit()).ord == action.ord + 1


# --- a database that fails


async def lost(bench, *operations: Callable) -> list[BridgeError]:
    """The errors of operations that share a transaction."""
    errors: list[BridgeError] = []

    def trying(operation):
        async def run() -> None:
            try:
                await operation()
            except BridgeError as error:
                errors.append(error)

        return run

    await pile_up(bench, [trying(operation) for operation in operations])
    return errors


async def test_a_lost_transaction_fails_every_operation_in_it_and_the_writer_goes_on(reopen):
    async with reopen() as bench:
        kept = await bench.submit()

        def full(tx) -> None:
            raise sa.exc.OperationalError("", {}, sqlite3.OperationalError("disk is full"))

        conflict = bench.new(id=kept.id)
        errors = await lost(
            bench,
            bench.submit,
            lambda: bench.store._executor.write(full),
            lambda: bench.submit(conflict),
            bench.submit,
        )
        assert [e.code for e in errors] == ["STORE_UNAVAILABLE"] * 4
        assert {e.executed for e in errors} == {None}
        assert all("retry with the same key" in e.detail for e in errors)
        assert len({id(e) for e in errors}) == 4
        assert bench.types() == ["action.queued"]
        page = await bench.store.list_actions(Filter())
        assert [action.id for action in page.actions] == [kept.id]
        assert (await bench.submit()).ord == kept.ord + 1


async def test_a_database_locked_by_an_outsider(reopen, tmp_path, monkeypatch):
    monkeypatch.setattr(dialect, "BUSY_TIMEOUT_MS", 20)
    async with reopen() as bench:
        first = await bench.submit()
        with closing(sqlite3.connect(tmp_path / "queue.db", isolation_level=None)) as outsider:
            outsider.execute("BEGIN IMMEDIATE")
            with pytest.raises(BridgeError) as caught:
                await bench.submit()
            assert caught.value.code == "STORE_UNAVAILABLE"
            assert await bench.store.get(first.id) == first
            outsider.execute("ROLLBACK")
        second = await bench.submit()
        assert [e.action for e in bench.told] == [first.id, second.id]


async def test_a_full_database(reopen):
    async with reopen() as bench:
        first = await bench.submit()

        def limit(pages: str):
            return lambda tx: tx.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

        await bench.store._executor.write(limit("1"))  # no page more than there are
        await bench.submit(text="x" * 500)
        with pytest.raises(BridgeError, match=r"STORE_UNAVAILABLE.*full"):
            await bench.submit(text="x" * 500_000)
        assert await bench.store.get(first.id) == first
        await bench.submit(text="x" * 5_000)  # on a fresh connection, without that limit
        stored = (await bench.store.list_actions(Filter())).total
        assert (await bench.store.counts()).by_state[State.PENDING] == stored
        events = await bench.store.events_since(0, 999)
        assert [e.seq for e in events] == list(range(1, stored + 1))
        assert events == bench.told


async def test_a_database_that_may_not_be_written(reopen):
    async with reopen() as bench:
        first = await bench.submit()

        def read_only(tx) -> None:
            tx.connection.exec_driver_sql("PRAGMA query_only = ON")

        await bench.store._executor.write(read_only)
        with pytest.raises(BridgeError, match="STORE_UNAVAILABLE"):
            await bench.submit()
        assert await bench.store.get(first.id) == first
        assert (await bench.submit()).ord == first.ord + 1  # a fresh connection writes again


async def test_a_database_that_cannot_be_opened(tmp_path):
    with pytest.raises(BridgeError, match="STORE_UNAVAILABLE"):
        async with open_store(tmp_path / "missing" / "queue.db", on_commit=print):
            pass
    path = tmp_path / "not-a-database.db"
    path.write_text("this is a letter to my mother " * 100)
    with pytest.raises(BridgeError, match="STORE_UNAVAILABLE"):
        async with open_store(path, on_commit=print):
            pass
    assert path.read_text().startswith("this is a letter")


async def test_a_database_in_memory_is_opened_inline_only():
    with pytest.raises(ValueError, match="inline"):
        open_store(":memory:", on_commit=print)


# --- how it is kept on disk


async def test_a_commit_is_on_disk_and_every_connection_is_set_up(reopen):
    async with reopen() as bench:

        def pragmas(connection) -> tuple:
            names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            return tuple(
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names
            )

        full, on = 2, 1
        write = await bench.store._executor.write(lambda tx: pragmas(tx.connection))
        assert write == ("wal", full, on, dialect.BUSY_TIMEOUT_MS)
        read = await bench.store._executor.read(pragmas)
        assert (read[0], read[2:]) == ("wal", (on, dialect.BUSY_TIMEOUT_MS))

        def write_by_reader(connection) -> None:
            connection.execute(sa.text("DELETE FROM actions"))

        with pytest.raises(BridgeError, match="STORE_UNAVAILABLE"):
            await bench.store._executor.read(write_by_reader)


async def test_reads_do_not_wait_for_the_writer(reopen):
    async with reopen() as bench:
        action = await bench.submit()
        gate = Gate(bench)
        async with trio.open_nursery() as nursery:
            await gate.close(nursery)
            assert await bench.store.get(action.id) == action
            gate.open()


async def test_errors_do_not_show_what_people_wrote(bench):
    first = await bench.submit()
    with pytest.raises(sa.exc.IntegrityError) as caught:
        await bench.submit(id=first.id, text="a secret")
    assert "a secret" not in str(caught.value)


async def test_a_file_can_be_named_by_path_or_url(tmp_path):
    path = tmp_path / "queue.db"
    async with open_store(f"sqlite:///{path}", on_commit=print) as store:
        epoch = store.epoch
    async with open_store(str(path), on_commit=print) as store:
        assert store.epoch == epoch
