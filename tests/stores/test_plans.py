"""No statement of everyday work reads more rows than it needs."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bridge.errors import BridgeError
from bridge.model import Lane, State
from bridge.store import Filter, open_store


class Plans:
    """The plan of each distinct statement that runs, by its text."""

    def __init__(self, engine: sa.Engine) -> None:
        self.plans: dict[str, list[str]] = {}
        sa.event.listen(engine, "before_cursor_execute", self._before)

    def _before(self, connection, cursor, statement, parameters, context, many) -> None:
        word = statement.split()[0]
        if word not in {"SELECT", "UPDATE", "DELETE"} or statement in self.plans:
            return
        one = parameters[0] if many else parameters
        found = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", one)
        self.plans[statement] = [row[3] for row in found]

    def of(self, *words: str) -> list[str]:
        """The plan's lines of the statements that hold all these words."""
        lines = [
            line
            for statement, plan in self.plans.items()
            if all(word in statement for word in words)
            for line in plan
        ]
        assert lines, f"no statement with {words} ran"
        return lines


@pytest.fixture
async def watched(bench_of):
    async with open_store(":memory:", on_commit=lambda events: None, executor="inline") as store:
        plans = Plans(store._executor._connection.engine)
        yield bench_of(store), plans


async def work(bench) -> None:
    """A day in the life of the queue: every operation at least once."""
    store = bench.store
    me = Lane("me")
    fence = await bench.fence()
    first = await bench.running()
    await store.set_mark(first.id, fence, {}, (), bench.now)
    second = await bench.running(coalesce_key="d")
    await store.requeue(first.id, fence, now=bench.now)
    await store.requeue(second.id, fence, now=bench.now)
    await bench.submit(idempotency_key="k", waited=True, start_by=bench.now + 5)
    await bench.submit(coalesce_key="c", expires_at=bench.now + 5)
    await bench.submit(coalesce_key="c", not_before=bench.now + 5)
    for lane in (me, Lane("me", frozenset({"send_text", "x"}))):
        for upto in (None, 99):
            await bench.candidates(lane, upto=upto)
    third = await bench.claim()
    await store.finish(third.id, fence, State.FAILED, now=bench.now)
    await store.fail_waiting(["me", "seat:s0"], now=bench.now, error=gone())
    leaver = await bench.submit(waited=True, start_by=bench.now + 5)
    await store.leave_waited(leaver.id, now=bench.now, error=gone())
    await bench.submit(waited=True, start_by=bench.now + 5)
    await store.recover(["me"], {"me": fence}, bench.now)
    await store.sweep(bench.now + 10)
    await store.vacuum(bench.now + 10**10)
    await store.by_key("me", "k")
    action = await bench.submit()
    await store.ahead(action)
    await store.unfinished(["me"], action.ord)
    await store.counts()
    await store.max_ord()
    await store.events_since(0, 5)
    await store.oldest_seq()


def gone() -> BridgeError:
    return BridgeError("TIMEOUT", "seen in a test", executed=False)


async def test_a_claim_goes_by_the_index_in_claim_order(watched):
    bench, plans = watched
    await work(bench)
    lines = plans.of("UNION ALL", "priority")
    searches = [line for line in lines if "actions" in line]
    assert searches
    for line in searches:
        assert "INDEX ix_actions_claim (state=? AND owner=? AND priority=?" in line, line
    assert not any("TEMP B-TREE" in line for line in lines)


async def test_nothing_goes_through_all_actions_or_events(watched):
    bench, plans = watched
    await work(bench)
    for statement, plan in plans.plans.items():
        for line in plan:
            bounded = "LIMIT" in statement and "ORDER BY events.seq" in statement
            newest = "max(actions.ord)" in statement or "min(events.seq)" in statement
            if "SCAN actions" in line or "SCAN events" in line:
                assert bounded or newest, f"{line}: {statement}"


@pytest.mark.parametrize(
    ("words", "index"),
    [
        (("idempotency_key = ",), "(owner=? AND idempotency_key=?)"),
        (("coalesce_key = ",), "ix_actions_coalesce"),
        (("finished_at <",), "ix_actions_finished"),
        (("not_before <=",), "ix_actions_due"),
        (("expires_at <=",), "ix_actions_expiry"),
        (("start_by <=",), "ix_actions_start_by"),
        (("count(*)", "start_by IS NOT NULL"), "ix_actions_start_by"),
        (("due_at",), "COVERING INDEX"),
    ],
)
async def test_each_question_has_its_index(watched, words, index):
    bench, plans = watched
    await work(bench)
    lines = [line for line in plans.of(*words) if "actions" in line]
    assert all(index in line for line in lines), lines


async def test_a_sweep_sorts_nothing(watched):
    bench, plans = watched
    await work(bench)
    for column in ("not_before <=", "expires_at <=", "start_by <=", "due_at", "finished_at <"):
        assert not any("TEMP B-TREE" in line for line in plans.of(column)), column


async def test_a_list_goes_from_the_newest_back(watched):
    bench, plans = watched
    await bench.submit()
    await bench.store.list_actions(Filter(states=frozenset({State.PENDING}), text="x"))
    lines = plans.of("ORDER BY actions.ord DESC")
    assert not any("TEMP B-TREE" in line for line in lines)
