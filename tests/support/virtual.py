"""A scheduler in virtual time: the real store in memory, flows that only take time."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import trio

from bridge.clock import VirtualWallClock
from bridge.config import Limits, Pace
from bridge.events import Hub
from bridge.kinds import CATALOGUE, DISPLAY_AND_APP, SIGNED_IN, Kind, Params, request_hash
from bridge.model import FINAL, Action, Effect, Event, LoginState, NewAction, Priority
from bridge.outcome import Outcome, Success
from bridge.policy import SeatView
from bridge.scheduler import Running, Scheduler
from bridge.stats import SchedulerStats
from bridge.store import Store, open_store
from bridge.submit import Submitter
from bridge.waiters import Waiters

OWNER = "demo"
READY = SeatView(
    display_alive=True,
    app_up=True,
    login=LoginState.LOGGED_IN,
    account=OWNER,
    owner=OWNER,
)


class Labelled(Params):
    """Params of the kinds that only tests know."""

    text: str


def _kind(name: str, priority: Priority, effect: Effect, *, signed_in: bool = True) -> Kind:
    return Kind(
        name=name,
        title=name,
        path=f"/test/{name}",
        params=Labelled,
        priority=priority,
        wait_timeout_ms=15_000,
        effect=effect,
        needs=SIGNED_IN if signed_in else DISPLAY_AND_APP,
    )


KINDS = {
    **CATALOGUE,
    "critical": _kind("critical", Priority.CRITICAL, Effect.IDEMPOTENT, signed_in=False),
    "high": _kind("high", Priority.HIGH, Effect.IDEMPOTENT),
    "low": _kind("low", Priority.LOW, Effect.IDEMPOTENT),
    "look": _kind("look", Priority.LOW, Effect.READ, signed_in=False),
}


@dataclass
class Ran:
    """One flow that ran, in virtual seconds."""

    label: str
    started: float
    ended: float = float("inf")


@dataclass
class Stage:
    """The scheduler under test and what it did."""

    store: Store
    scheduler: Scheduler
    submitter: Submitter
    waiters: Waiters
    clock: VirtualWallClock
    stats: SchedulerStats
    hub: Hub
    pace: Pace
    nursery: trio.Nursery
    view: SeatView = READY
    ran: list[Ran] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long the flow of a label takes; 1 s otherwise."""
    script: dict[str, list[Outcome | Callable[[Running], Any]]] = field(default_factory=dict)
    """What the flows of a label come to, one after another; Success otherwise."""
    judged: list[str] = field(default_factory=list)
    verdicts: dict[str, Outcome] = field(default_factory=dict)
    changed: trio.Event = field(default_factory=trio.Event)
    """Set, and made anew, with each batch of events."""
    number: Any = field(default_factory=itertools.count)

    # the runner's side

    async def carry_out(self, running: Running) -> Outcome:
        label = self.label(running.action)
        ran = Ran(label, trio.current_time())
        self.ran.append(ran)
        try:
            await trio.sleep(self.seconds.get(label, 1.0))
            planned = self.script.get(label, [])
            outcome = planned.pop(0) if planned else Success({"label": label})
            return await outcome(running) if callable(outcome) else outcome
        finally:
            ran.ended = trio.current_time()

    async def judge_left_over(self, running: Running) -> Outcome:
        label = self.label(running.action)
        self.judged.append(label)
        return self.verdicts[label]

    # the test's side

    @staticmethod
    def label(action: Action | NewAction) -> str:
        return str(action.params.get("text", action.kind))

    def order(self) -> list[str]:
        return [ran.label for ran in self.ran]

    def new(
        self, label: str, kind: str = "send_text", *, to: str = "Alice", **more: Any
    ) -> NewAction:
        spec = KINDS[kind]
        params: dict[str, Any] = {"text": label}
        if kind == "send_text":
            params["to"] = to
        if kind == "screenshot":
            params = {"window": label, "region": None, "format": "png"}
        base = NewAction(
            id=f"{label}-{next(self.number)}".replace(" ", "-"),
            seat="s0",
            owner=OWNER if spec.signed_in else "seat:s0",
            kind=kind,
            params=params,
            request_hash=request_hash(kind, params),
            priority=spec.priority,
            effect=spec.effect,
            trace_id="",
        )
        return replace(base, **more)

    async def enqueue(self, label: str, kind: str = "send_text", **more: Any) -> Action:
        return await self.submitter.enqueue(self.new(label, kind, **more))

    def waited(
        self, label: str, kind: str = "send_text", *, wait: float = 15.0, **more: Any
    ) -> Caller:
        """Start a caller who waits; look at `caller.result` or `caller.error` afterwards."""
        caller = Caller()
        self.nursery.start_soon(caller.run, self.submitter, self.new(label, kind, **more), wait)
        return caller

    async def quiet(self) -> None:
        """Wait until nothing is pending, due later or running any more."""
        while True:
            changed = self.changed
            counts = await self.store.counts()
            if not any(n for state, n in counts.by_state.items() if state not in FINAL):
                return
            await changed.wait()

    def set_view(self, **changes: Any) -> None:
        self.view = replace(self.view, **changes)
        self.scheduler.wake()


@dataclass
class Caller:
    """Somebody who waits for the end of an action."""

    result: Action | None = None
    error: Exception | None = None
    done: trio.Event = field(default_factory=trio.Event)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    answered_at: float = float("nan")

    async def run(self, submitter: Submitter, new: NewAction, wait: float) -> None:
        with self.scope:
            try:
                self.result = await submitter.execute(new, wait)
            except Exception as error:
                self.error = error
        self.answered_at = trio.current_time()
        self.done.set()


@asynccontextmanager
async def stage(
    *,
    pace: Pace | None = None,
    limits: Limits | None = None,
    url: str = ":memory:",
    start: bool = True,
) -> AsyncIterator[Stage]:
    """A running scheduler in virtual time (use with a MockClock)."""
    clock, stats, waiters = VirtualWallClock(), SchedulerStats(), Waiters()
    hub = Hub(clock)
    pace = pace or Pace(send_delay_ms=0)
    async with open_store(url, on_commit=hub.publish, executor="inline") as store:
        made: list[Stage] = []
        scheduler = Scheduler(
            seat="s0",
            store=store,
            kinds=KINDS,
            view=lambda: made[0].view,
            runner=_Late(made),
            clock=clock,
            pace=pace,
            stats=stats,
            worker_id="w",
        )
        submitter = Submitter(
            store=store,
            waiters=waiters,
            kinds=KINDS,
            view=scheduler.view,
            clock=clock,
            pace=pace,
            limits=limits or Limits(),
            stats=stats,
        )
        async with trio.open_nursery() as nursery:
            it = Stage(store, scheduler, submitter, waiters, clock, stats, hub, pace, nursery)
            made.append(it)

            def heard(events: Any) -> None:
                it.events.extend(events)
                it.changed.set()
                it.changed = trio.Event()
                for event in events:
                    if event.type in {f"action.{state.value}" for state in FINAL}:
                        waiters.ended(event.action)
                scheduler.wake()

            hub.listen(heard)
            if start:
                await nursery.start(scheduler.run)
            yield it
            nursery.cancel_scope.cancel()


class _Late:
    """The stage is the runner, but it is made after the scheduler."""

    def __init__(self, made: list[Stage]) -> None:
        self._made = made

    async def carry_out(self, running: Running) -> Outcome:
        return await self._made[0].carry_out(running)

    async def judge_left_over(self, running: Running) -> Outcome:
        return await self._made[0].judge_left_over(running)
