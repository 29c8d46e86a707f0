"""A process that is killed while it writes loses nothing that it said was accepted."""

from __future__ import annotations

import subprocess
import sys

import trio

from bridge.model import Priority, State
from bridge.store import Filter

WRITE = """
import itertools, sys, trio
from bridge.config import Limits
from bridge.model import Effect, NewAction, Priority
from bridge.store import open_store

ids = itertools.count()

def new(n):
    return NewAction(
        id=f"k{n}", seat="s0", owner="me", kind="send_text", params={"to": "Alice", "text": "x"},
        request_hash="h", priority=Priority.NORMAL, effect=Effect.ONCE, trace_id="t",
        idempotency_key=str(n),
    )

async def post(store):
    while True:
        submitted = await store.submit(new(next(ids)), now=1, limits=Limits())
        print(submitted.action.id, flush=True)

async def main():
    async with open_store(sys.argv[1], on_commit=lambda events: None) as store:
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(post, store)

trio.run(main)
"""


def accepted_until_killed(path, count: int) -> list[str]:
    """Ids that a process told of before it was killed, at least `count`."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        told = [process.stdout.readline() for _ in range(count)]
        process.kill()
        told += process.stdout.readlines()
    return [line.strip() for line in told if line.endswith("\n")]


async def test_what_was_accepted_is_there_after_a_kill(reopen, tmp_path):
    def run() -> list[str]:
        return accepted_until_killed(tmp_path / "queue.db", 60)

    told = await trio.to_thread.run_sync(run)
    assert len(set(told)) == len(told) >= 60
    async with reopen() as bench:
        page = await bench.store.list_actions(Filter(per_page=100_000))
        stored = [action.id for action in page.actions]
        assert set(told) <= set(stored)
        events = await bench.store.events_since(0, 100_000)
        assert [e.action for e in events] == stored[::-1]
        assert [e.seq for e in events] == list(range(1, page.revision + 1))
        counts = await bench.store.counts()
        assert counts.by_state[State.PENDING] == len(stored) == page.total
        assert counts.pending_by_priority[Priority.NORMAL] == len(stored)
