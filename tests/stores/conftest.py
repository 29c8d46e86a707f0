"""The store under test, in memory and on disk, and short words for what the tests need."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from bridge.config import Limits
from bridge.errors import BridgeError
from bridge.kinds import request_hash
from bridge.model import Action, Effect, Event, Lane, NewAction, Priority
from bridge.store import Store, open_store

SECONDS = 30

_ids = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every asynchronous test of this folder."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and isinstance(item, pytest.Function):
            test = item.obj
            if inspect.iscoroutinefunction(test):
                item.obj = _bounded(test)


def _bounded(test: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(test)
    async def run(**fixtures: Any) -> None:
        with trio.fail_after(SECONDS):
            await test(**fixtures)

    return run


class Bench:
    """A store with a clock that stands still unless told otherwise, and one owner's worker."""

    def __init__(self, store: Store, told: list[Event]) -> None:
        self.store = store
        self.told = told
        self.now = 1_000_000
        self.fences: dict[str, int] = {}

    def new(self, **changes: Any) -> NewAction:
        """A new action; `text` is its params' text, and what makes its request another one."""
        params = {"to": "Alice", "text": changes.pop("text", "hello")}
        base = NewAction(
            id=f"a{next(_ids)}",
            seat="s0",
            owner="me",
            kind="send_text",
            params=params,
            request_hash="",
            priority=Priority.NORMAL,
            effect=Effect.ONCE,
            trace_id="trace",
        )
        new = replace(base, **changes)
        return replace(new, request_hash=request_hash(new.kind, new.params))

    async def submit(
        self,
        new: NewAction | None = None,
        *,
        limits: Limits | None = None,
        refusal: BridgeError | None = None,
        **changes: Any,
    ) -> Action:
        """Submit one; the row."""
        submitted = await self.store.submit(
            new or self.new(**changes), now=self.now, limits=limits or Limits(), refusal=refusal
        )
        return submitted.action

    async def fence(self, owner: str = "me") -> int:
        if owner not in self.fences:
            self.fences[owner] = await self.store.acquire(owner, "worker", self.now)
        return self.fences[owner]

    async def claim(
        self, *lanes: Lane, id: str | None = None, upto: int | None = None
    ) -> Action | None:
        """Start the first candidate, or the one named if it is a candidate."""
        lanes = lanes or (Lane("me"),)
        for lane in lanes:
            await self.fence(lane.owner)

        def choose(candidates: Sequence[Any]) -> str | None:
            ids = [c.id for c in sorted(candidates, key=lambda c: (c.priority, c.ord))]
            if id is not None:
                return id if id in ids else None
            return ids[0] if ids else None

        return await self.store.claim(
            now=self.now, fence_of=self.fences, lanes=lanes, choose=choose, upto=upto
        )

    async def candidates(self, *lanes: Lane, upto: int | None = None) -> list[str]:
        """What a claim would be offered."""
        offered: list[str] = []
        await self.store.claim(
            now=self.now,
            fence_of=self.fences,
            lanes=lanes or (Lane("me"),),
            choose=lambda found: offered.extend(c.id for c in found),
            upto=upto,
        )
        return offered

    async def running(self, **changes: Any) -> Action:
        """An action that runs."""
        action = await self.submit(**changes)
        started = await self.claim(Lane(action.owner), id=action.id)
        assert started is not None
        return started

    def types(self, action: Action | None = None) -> list[str]:
        """The events told so far, or those of one action."""
        return [e.type for e in self.told if action is None or e.action == action.id]


Opener = Callable[[], AbstractAsyncContextManager[Store]]


@pytest.fixture(params=["memory", "file"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    told: list[Event] = []
    memory = request.param == "memory"
    async with open_store(
        ":memory:" if memory else tmp_path / "queue.db",
        on_commit=told.extend,
        executor="inline" if memory else "thread",
    ) as store:
        yield Bench(store, told)


@pytest.fixture
def reopen(tmp_path: Path) -> Callable[[], AbstractAsyncContextManager[Bench]]:
    """Opens the same file again and again, as a restarted bridge does."""

    @asynccontextmanager
    async def open_bench() -> AsyncIterator[Bench]:
        told: list[Event] = []
        async with open_store(tmp_path / "queue.db", on_commit=told.extend) as store:
            yield Bench(store, told)

    return open_bench


@pytest.fixture
def problem() -> Callable[..., Mapping[str, Any]]:
    """A stored error."""

    def make(code: str = "UI_ERROR", executed: bool | None = False) -> Mapping[str, Any]:
        return BridgeError(code, "seen in a test", executed=executed).to_json()

    return make


@pytest.fixture
def bench_of() -> Callable[[Store], Bench]:
    """A bench around a store that the test opened itself."""
    return lambda store: Bench(store, [])
