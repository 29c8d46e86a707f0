"""The scheduler (L2): one flow at a time, the most urgent first.

What starts next is decided by `bridge.policy`, what becomes of it by `bridge.outcome`; this
task waits, claims, has the flow carried out, and writes what came of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog
import trio

from bridge.clock import WallClock
from bridge.config import Pace
from bridge.errors import BridgeError, LostFence
from bridge.kinds import Kind
from bridge.model import Action, Candidate, Lane, Priority, State, Step
from bridge.outcome import Finish, Outcome, Requeue, Retry, Success, Unknowable, decide
from bridge.policy import (
    Choice,
    LastFlow,
    RateWindow,
    SeatView,
    app_not_ready,
    choose,
    cooldown_seconds,
    refusal,
)
from bridge.stats import SchedulerStats
from bridge.store import Store

log = structlog.get_logger(__name__)

NAP = 5.0
"""The longest sleep: bounds what a clock jump or a lost wake-up can cost."""

STORE_RETRY = 1.0
"""Seconds until the store is tried again after it failed."""


@dataclass
class Running:
    """The flow that runs. `cancel_requested` is obeyed until the key is handed over."""

    action: Action
    fence: int
    cancel_requested: bool = False
    handed_over: bool = False
    waits_for_restart: bool = False
    """It asked for a restart of the app and waits for it; never interrupted for one."""
    steps: list[Step] = field(default_factory=list)
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)


@dataclass
class _Drain:
    """A drain under way: nothing that arrived after `upto` is claimed while it lasts."""

    upto: int
    progress: trio.Event = field(default_factory=trio.Event)


class FlowRunner(Protocol):
    """Carries out actions; raises nothing but LostFence."""

    async def carry_out(self, running: Running) -> Outcome:
        """Run the action's flow."""
        ...

    async def judge_left_over(self, running: Running) -> Outcome:
        """Say what became of an action that was running when its process died."""
        ...


class Scheduler:
    """Runs the actions of one seat.

    Args:
        seat: its name.
        store: where the actions lie.
        kinds: the kinds this bridge knows.
        view: what is known of the seat now.
        runner: has a flow run, or judges a left-over one, and says how it ended.
        worker_id: unique per start.
    """

    def __init__(
        self,
        *,
        seat: str,
        store: Store,
        kinds: Mapping[str, Kind],
        view: Callable[[], SeatView],
        runner: FlowRunner,
        clock: WallClock,
        pace: Pace,
        stats: SchedulerStats,
        worker_id: str,
    ) -> None:
        self.seat = seat
        self.seat_owner = f"seat:{seat}"
        self.running: Running | None = None
        self.last_choice = Choice(None)
        self._store = store
        self._kinds = kinds
        self._bare_view = view
        self._runner = runner
        self._clock = clock
        self._pace = pace
        self._stats = stats
        self._worker_id = worker_id
        self._fences: dict[str, int] = {}
        self._wake = trio.Event()
        self._last: LastFlow | None = None
        self._window = RateWindow(pace.max_per_second)
        self._dead_from = -math.inf
        self._dead_until = -math.inf
        self._drains: list[_Drain] = []
        self._next_due_ms: int | None = 0
        self._idle = trio.Event()
        self._idle.set()
        self._throttles: dict[str, int] = {}
        """Throttles in a row, by owner."""
        self._cool_until_ms: dict[str, int] = {}

    # -- what others tell it -------------------------------------------------------------

    def wake(self) -> None:
        """Look again: something came, left, or became possible."""
        self._wake.set()
        self._wake = trio.Event()
        for drain in self._drains:
            drain.progress.set()
            drain.progress = trio.Event()

    def view(self) -> SeatView:
        """The seat as the order sees it, with dead window and cooldown."""
        bare = self._bare_view()
        cool = self._cool_until_ms.get(bare.account or "", bare.cooldown_until_ms)
        return replace(bare, dead_until=self._dead_until, cooldown_until_ms=cool)

    async def mark_app_dead(self, seconds: float) -> None:
        """Let every waited non-CRITICAL action fail fast for at most `seconds`.

        Those already waiting fail now. The window ends early when an app that was launched
        after this call is ready (`app_ready`). Async actions are held.
        """
        self._dead_from = trio.current_time()
        self._dead_until = max(self._dead_until, self._dead_from + seconds)
        failed = await self._store.fail_waiting(
            self.owners(), now=self._clock.now_ms(), error=app_not_ready("the app is restarted")
        )
        self._stats.fast_failed(len(failed))
        self.wake()

    def app_ready(self, launched_at: float) -> None:
        """An app that was launched at `launched_at` (monotonic) is ready."""
        if launched_at >= self._dead_from:
            self._dead_until = -math.inf
        self.wake()

    async def drain(self, timeout: float) -> bool:
        """Wait until all non-CRITICAL work that is pending or running now has ended.

        What is accepted meanwhile stays pending. With an app that is known to be away only the
        running flow is waited for. False when `timeout` seconds did not suffice.
        """
        drain = _Drain(await self._store.max_ord())
        self._drains.append(drain)
        try:
            with trio.move_on_after(timeout):
                while True:
                    progress = drain.progress
                    if not await self._drained(drain):
                        await progress.wait()
                        continue
                    return True
            return False
        finally:
            self._drains.remove(drain)
            self.wake()

    async def _drained(self, drain: _Drain) -> bool:
        if not self._bare_view().app_up:
            return self.running is None or self.running.action.priority is Priority.CRITICAL
        return not await self._store.unfinished(self.owners(), drain.upto)

    def interrupt(self) -> None:
        """End the running flow for a restart of the app; costs it no attempt."""
        if self.running is not None and not self.running.waits_for_restart:
            self.running.scope.cancel()

    def request_cancel(self, action_id: str) -> None:
        """The action is to end before its commit point, if it is the running one."""
        if self.running is not None and self.running.action.id == action_id:
            self.running.cancel_requested = True

    def owners(self) -> tuple[str, ...]:
        """The owners whose actions this seat runs: itself and its last confirmed account."""
        owner = self._bare_view().owner
        return (self.seat_owner,) if owner is None else (self.seat_owner, owner)

    # -- the task ------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Recover, then run flows until cancelled. A failing flow or store never ends it."""
        await self._patiently(self._recover)
        task_status.started()
        while True:
            await self._patiently(self._turn)

    async def stop_claiming(self) -> None:
        """Wait until no flow runs; the view's `closing` already keeps new ones from starting."""
        self.wake()
        await self._idle.wait()

    async def _patiently(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except LostFence:
            log.warning("lease lost", seat=self.seat)
            self._fences.clear()
            await trio.sleep(STORE_RETRY)
        except BridgeError as error:
            log.error("store failed", seat=self.seat, code=error.code, detail=error.detail)
            await trio.sleep(STORE_RETRY)
        except Exception:
            log.exception("scheduler turn failed", seat=self.seat)
            await trio.sleep(STORE_RETRY)

    async def _recover(self) -> None:
        for owner in self.owners():
            await self._take(owner)

    async def _take(self, owner: str) -> int:
        """The worker's fence for an owner; when it is new, left-over actions are judged first."""
        if owner in self._fences:
            return self._fences[owner]
        now = self._clock.now_ms()
        fence = self._fences[owner] = await self._store.acquire(owner, self._worker_id, now)
        for action in await self._store.recover([owner], {owner: fence}, now):
            log.info("recovering", action=action.id, trace_id=action.trace_id)
            await self._carry_through(Running(action, fence), self._runner.judge_left_over)
        return fence

    async def _turn(self) -> None:
        wake = self._wake
        await self._sweep()
        self.last_choice = Choice(None)
        action = None if self.view().closing else await self._claim()
        if action is not None:
            await self._run(action)
            return
        with trio.move_on_at(self._nap_until()):
            await wake.wait()

    def _nap_until(self) -> float:
        """When something may become possible that nobody will tell of."""
        now, view = trio.current_time(), self.view()
        ends = [now + NAP]
        if self.last_choice.until is not None:
            ends.append(self.last_choice.until)
        if view.dead_until > now:
            ends.append(view.dead_until)
        for due_ms in (self._next_due_ms, view.cooldown_until_ms):
            if due_ms is not None:
                ends.append(now + max(0.0, (due_ms - self._clock.now_ms()) / 1000))
        return min(ends)

    async def _sweep(self) -> None:
        swept = await self._store.sweep(self._clock.now_ms())
        self._next_due_ms = swept.next_due

    def lanes(self) -> list[Lane]:
        """The owners whose actions may start now, and which kinds of them."""
        view, now, now_ms = self.view(), trio.current_time(), self._clock.now_ms()
        lanes = []
        owners = [(self.seat_owner, False)]
        if view.account is not None:
            owners.append((view.account, True))
        for owner, signed_in in owners:
            mine = [kind for kind in self._kinds.values() if kind.signed_in is signed_in]
            free = [
                kind.name
                for kind in mine
                if refusal(kind, kind.priority, owner, view, now=now, now_ms=now_ms) is None
            ]
            if free:
                lanes.append(Lane(owner, None if len(free) == len(mine) else frozenset(free)))
        return lanes

    async def _claim(self) -> Action | None:
        lanes = self.lanes()
        if not lanes:
            return None
        fences = {lane.owner: await self._take(lane.owner) for lane in lanes}
        upto = min((drain.upto for drain in self._drains), default=None)
        if self._drains and not self._bare_view().app_up:
            upto = 0
        now, now_ms = trio.current_time(), self._clock.now_ms()

        def pick(candidates: Sequence[Candidate]) -> str | None:
            self.last_choice = choose(
                candidates,
                now=now,
                now_ms=now_ms,
                last=self._last,
                window=self._window,
                pace=self._pace,
                contact_of=self._contact,
            )
            return self.last_choice.id

        return await self._store.claim(
            now=now_ms, fence_of=fences, lanes=lanes, choose=pick, upto=upto
        )

    def _contact(self, action: Candidate | Action) -> str | None:
        kind = self._kinds.get(action.kind)
        return None if kind is None else kind.contact(action.params)

    async def _run(self, action: Action) -> None:
        started = trio.current_time()
        self._window.note(started)
        waited_ms = max(0, (action.started_at or action.created_at) - action.created_at)
        running = Running(action, self._fences[action.owner])
        ran = False
        try:
            ran = await self._carry_through(running, self._runner.carry_out)
        finally:
            if ran:
                ended = trio.current_time()
                self._last = LastFlow(
                    ended, action.priority, action.delay_ms, self._contact(action)
                )
                self._stats.executed(action.priority, waited_ms, (ended - started) * 1000)

    async def _carry_through(
        self, running: Running, work: Callable[[Running], Awaitable[Outcome]]
    ) -> bool:
        """Run one flow and write what came of it; True once it ran."""
        self.running = running
        self._idle = trio.Event()
        try:
            outcome = await self._survive(running, work)
            # Shielded: what happened on the screen must not be lost to a shutdown.
            with trio.CancelScope(shield=True):
                await self._conclude(running, outcome)
            return True
        finally:
            self.running = None
            self._idle.set()
            self.wake()

    async def _survive(
        self, running: Running, work: Callable[[Running], Awaitable[Outcome]]
    ) -> Outcome:
        """The outcome, also when the runner itself is at fault."""
        try:
            return await work(running)
        except LostFence:
            raise
        except Exception as error:
            log.exception("the runner failed", action=running.action.id)
            problem = BridgeError("UI_ERROR", f"the bridge is at fault: {error!r}")
            return Unknowable(problem) if running.handed_over else Retry(problem)

    async def _conclude(self, running: Running, outcome: Outcome) -> None:
        while True:
            try:
                return await self._write(running, outcome)
            except BridgeError as error:
                if error.code != "STORE_UNAVAILABLE" or self._bare_view().closing:
                    raise
                log.error("outcome not stored yet", action=running.action.id, detail=error.detail)
                await trio.sleep(STORE_RETRY)

    def _note_throttle(self, owner: str, outcome: Outcome, now_ms: int) -> None:
        if isinstance(outcome, Success):
            self._throttles.pop(owner, None)
            self._cool_until_ms.pop(owner, None)
        elif isinstance(outcome, Retry) and outcome.queue:
            count = self._throttles[owner] = self._throttles.get(owner, 0) + 1
            seconds = cooldown_seconds(count, outcome.after, random.uniform(-1, 1))
            self._cool_until_ms[owner] = now_ms + round(seconds * 1000)
            outcome.error.retry_after = math.ceil(seconds)
            log.warning("account cools down", owner=owner, seconds=round(seconds), throttles=count)

    async def _write(self, running: Running, outcome: Outcome) -> None:
        action, now = running.action, self._clock.now_ms()
        self._note_throttle(action.owner, outcome, now)
        match decide(action, outcome):
            case Finish() as end:
                await self._store.finish(
                    action.id,
                    running.fence,
                    end.state,
                    now=now,
                    result=outcome.result if isinstance(outcome, Success) else None,
                    error=None if end.error is None else end.error.to_json(),
                    evidence=outcome.evidence,
                    steps=running.steps,
                    counted=end.counted,
                    free_key=end.free_key,
                )
            case Requeue() as again:
                await self._store.requeue(
                    action.id,
                    running.fence,
                    now=now,
                    not_before=now + round(again.after * 1000) if again.after else None,
                    counted=again.counted,
                    crashed=again.crashed,
                    error=again.error.to_json(),
                    evidence=outcome.evidence,
                    steps=running.steps,
                )
        log.info(
            "flow ended",
            action=action.id,
            kind=action.kind,
            priority=action.priority.name,
            outcome=type(outcome).__name__,
            trace_id=action.trace_id,
            state=State.SUCCEEDED if isinstance(outcome, Success) else None,
        )
