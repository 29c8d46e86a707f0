"""A seat: one display, one app, one worker, and what is known of them.

The seat's tasks (scheduler, probe, restarter, display guard) live in one nursery; what they see
comes together here, and what the order may rely on is `Seat.view`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
import trio

from bridge.apps.base import Adapter, Reading
from bridge.apps.common import COMMON_FLOWS
from bridge.clock import WallClock
from bridge.config import Settings
from bridge.desktop import Desktop
from bridge.errors import BridgeError
from bridge.events import Hub
from bridge.evidence import Evidence
from bridge.files import Files
from bridge.found import find_app
from bridge.hands import Eyes
from bridge.handson import HandsOn, Lease
from bridge.kinds import Kind
from bridge.model import Action, Event, Json, LoginState, Step
from bridge.policy import SeatView, sign_in_refusal
from bridge.probe import Probe
from bridge.restarter import Launch, Restarter
from bridge.runner import Runner
from bridge.scheduler import Scheduler
from bridge.stats import SchedulerStats
from bridge.store import Store
from bridge.watchdog import LEAVE_ALONE, Watchdog
from ui_backends.a11y import A11yReader
from ui_backends.base import Backend

log = structlog.get_logger(__name__)

DEAD_WINDOW = 15.0
"""Seconds that waited actions fail fast for after the app has ended (at most)."""

DISPLAY_CHECK = 2.0
"""Seconds between two looks at the X server."""

DRAIN = 5.0
"""Seconds that the work at hand is given before a hung app is restarted."""

REREADS = 5
"""Tries at two readings that agree, when a flow asks for one."""

EXIT_STUCK = 70
"""The exit code of a process that gave up on a flow which cannot be stopped."""


@dataclass
class Knowledge:
    """What has been seen of the seat, each as it was seen last."""

    display_alive: bool = True
    window_seen: bool = False
    """The present app process has shown a window."""
    login: LoginState = LoginState.UNKNOWN
    account: str | None = None
    owner: str | None = None
    """The last confirmed account; stored."""
    reading: Mapping[str, Json] = field(default_factory=dict)
    attention: str | None = None
    hung: bool = False
    """The watchdog has given the present app process up."""
    stuck: bool = False
    closing: bool = False


class Seat:
    """One seat. Satisfies `bridge.runner.Seat` and `bridge.restarter.AppObserver`."""

    def __init__(
        self,
        *,
        settings: Settings,
        adapter: Adapter,
        backend: Backend,
        desktop: Desktop,
        store: Store,
        hub: Hub,
        kinds: Mapping[str, Kind],
        clock: WallClock,
        stats: SchedulerStats,
        lease_check: Callable[[], None],
        a11y: A11yReader | None = None,
    ) -> None:
        self.name = settings.seat
        self.adapter = adapter
        self.backend = backend
        self.a11y = a11y
        self.needs_clean = True
        self.known = Knowledge()
        self.evidence = Evidence(settings.state_dir / "evidence")
        self.files = Files(settings.state_dir, settings.file_folders)
        self._store = store
        self._hub = hub
        self._clock = clock
        self._desktop = desktop
        self._lease_check = lease_check
        self._app_gone = trio.Event()
        self.hands_on = HandsOn()
        self._hands_told = False
        """The last `seat.hands_on` event said that a person has the seat."""
        self.login_changed = trio.Event()
        """Set, and made anew, with each change of the sign-in state."""
        self._login_watchers = 0
        self.restarter = Restarter(
            adapter=adapter,
            state_dir=settings.state_dir,
            env=desktop.app_env,
            observer=self,
            find=lambda: find_app(backend, desktop.display, adapter.launch()),
            external=settings.app_start == "external",
        )
        self.probe = Probe(
            adapter=adapter,
            eyes=Eyes(backend, a11y),
            interval=settings.probe_interval,
            coming_up=self._coming_up,
            on_reading=self._on_reading,
        )
        self.watchdog = Watchdog(
            eyes=Eyes(backend),
            interval=settings.watchdog_interval,
            pid=lambda: None if self.restarter.launch is None else self.restarter.launch.child.pid,
            login=lambda: self.known.login,
            rescue=self.rescue_app,
        )
        runner = Runner(
            seat=self,
            kinds=kinds,
            flows={**COMMON_FLOWS, **adapter.flows},
            store=store,
            clock=clock,
            evidence=self.evidence,
            open_file=self.files.open,
        )
        self.scheduler = Scheduler(
            seat=self.name,
            store=store,
            kinds=kinds,
            view=self._bare_view,
            runner=runner,
            clock=clock,
            pace=settings.pace,
            stats=stats,
            worker_id=uuid.uuid4().hex,
        )

    # -- its tasks -----------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Adopt what runs, judge what was left, then work until cancelled.

        Raises DisplayEnded when the X server that we are in charge of has ended, LostFence when
        the queue's lock is not ours any more.
        """
        self.known.owner = await self._store.seat_account(self.name)
        await self.files.prepare()
        await self.restarter.adopt()
        async with trio.open_nursery() as nursery:
            await nursery.start(self.scheduler.run)
            await nursery.start(self.restarter.run)
            await nursery.start(self.probe.run)
            await nursery.start(self.watchdog.run)
            nursery.start_soon(self._watch_display)
            task_status.started()

    async def close(self) -> None:
        """Stop claiming and let the running flow end; the caller bounds the wait."""
        self.known.closing = True
        self.scheduler.wake()
        await self.scheduler.stop_claiming()

    async def _watch_display(self) -> None:
        while True:
            if self._desktop.server_ended():
                raise DisplayEnded("the X server has ended; the next start brings up another")
            alive = await self.backend.alive()
            if alive is not self.known.display_alive:
                self.known.display_alive = alive
                log.warning("display", alive=alive)
                self.probe.hurry()
                self.scheduler.wake()
            self._lease_check()  # another bridge may have the queue: end rather than guess
            await self._desktop.tend()
            await self._hands_back()  # a lease that nobody renewed
            await trio.sleep(DISPLAY_CHECK)

    # -- what is known -------------------------------------------------------------------

    def view(self) -> SeatView:
        """What the order may rely on now, the dead window included."""
        return self.scheduler.view()

    def _bare_view(self) -> SeatView:
        known = self.known
        return SeatView(
            display_alive=known.display_alive,
            app_up=self.launch_id is not None and known.window_seen and not known.hung,
            login=known.login,
            account=known.account,
            owner=known.owner,
            hands_on=self.hands_on.held(trio.current_time()) is not None,
            closing=known.closing,
        )

    def describe(self) -> dict[str, Json]:
        """The seat as the status page shows it."""
        view = self.view()
        return {
            "name": self.name,
            "app": self.adapter.name,
            "display": {"name": self._desktop.display, "alive": view.display_alive},
            "app_up": view.app_up,
            "login": {"state": view.login.value, "account": view.account},
            "owner": view.owner,
            "stuck": self.known.stuck,
            "hands_on": view.hands_on,
            "watchdog": {
                "looks": self.watchdog.looks,
                "finding": None if self.watchdog.finding is None else self.watchdog.finding.value,
            },
            "needs_attention": self.known.attention,
            "running": None
            if self.scheduler.running is None
            else {
                "action": self.scheduler.running.action.id,
                "kind": self.scheduler.running.action.kind,
                "steps": len(self.scheduler.running.steps),
            },
        }

    @contextmanager
    def watch_login(self) -> Iterator[None]:
        """Read the sign-in more often as long as somebody is signing in, within this block."""
        self._login_watchers += 1
        self.probe.hurry()
        try:
            yield
        finally:
            self._login_watchers -= 1

    def _coming_up(self) -> bool:
        hurried = {LoginState.UNKNOWN, LoginState.STARTING}
        if self._login_watchers:
            hurried |= {LoginState.QR, LoginState.CONFIRM}
        return self.launch_id is not None and (
            not self.known.window_seen or self.known.login in hurried
        )

    async def _on_reading(self, reading: Reading) -> None:
        known, before = self.known, (self.known.login, self.known.account)
        served = known.owner
        known.reading = reading.evidence
        if reading.state is LoginState.UNKNOWN:
            return  # keeps the last answer
        if not known.window_seen and self.launch_id is not None:
            await self._app_ready()
        known.login, known.account = reading.state, reading.account
        if reading.state is LoginState.LOGGED_IN and reading.account not in {None, known.owner}:
            known.owner = reading.account
            await self._store.set_seat_account(
                self.name, str(reading.account), self._clock.now_ms()
            )
        if (known.login, known.account) != before:
            data = {"state": known.login.value, "account": known.account}
            await self._emit("login.changed", data)
            self.scheduler.wake()
            self.login_changed.set()
            self.login_changed = trio.Event()
            await self._refuse_waiting(served)

    async def _refuse_waiting(self, owner: str | None) -> None:
        """Tell the callers who wait for work of this account, once somebody has signed it out."""
        error = None if owner is None else sign_in_refusal(self._bare_view(), owner)
        if owner is None or error is None or error.code != "NOT_LOGGED_IN":
            return
        try:
            await self._store.fail_waiting([owner], now=self._clock.now_ms(), error=error)
        except BridgeError as problem:  # they run into their own timeout then
            log.error("waiting actions not told", code=problem.code)

    # -- what the restarter tells --------------------------------------------------------

    async def app_started(self, launch: Launch, *, adopted: bool) -> None:
        """A process is there; its window need not be."""
        self._app_gone = trio.Event()
        self.known.window_seen = False
        self.known.login = LoginState.UNKNOWN if adopted else LoginState.STARTING
        self.known.account = None
        self.known.attention = None
        self.known.hung = False
        self.needs_clean = True
        await self._emit("app.started", {"adopted": adopted, "pid": launch.child.pid})
        self.probe.hurry()

    async def app_ended(self, launch: Launch, *, asked: bool) -> None:
        """The process has ended; who asked for it has marked the app dead already."""
        self._app_gone.set()
        self.known.window_seen = False
        self.known.login = LoginState.STARTING
        self.known.account = None
        self.needs_clean = True
        if asked:
            await self._emit("app.killed", {"pid": launch.child.pid})
            return
        try:
            await self.scheduler.mark_app_dead(DEAD_WINDOW)
        except BridgeError as error:  # its window counts; those who wait are told when it is over
            log.error("waiting callers not told", code=error.code)
        await self._emit("app.dead", {"pid": launch.child.pid, "why": "ended"})

    async def app_needs_attention(self, why: str) -> None:
        """It will not be started again by itself."""
        self.known.attention = why
        log.error("app needs attention", why=why)
        await self._emit("app.needs_attention", {"why": why})

    async def _app_ready(self) -> None:
        self.known.window_seen = True
        launch = self.restarter.launch
        await self._emit("app.ready", {})
        if launch is not None:
            self.scheduler.app_ready(launch.at)
            launch.ready.set()

    # -- a person at the seat ------------------------------------------------------------

    async def take_hands_on(self, lease_id: str | None, who: str) -> Lease:
        """Give the seat to a person (or renew the lease), once the running flow has ended."""
        lease = self.hands_on.acquire(lease_id, who, trio.current_time())
        if not self._hands_told:
            self._hands_told = True
            self.scheduler.wake()
            await self._emit("seat.hands_on", {"held": True, "who": who})
        await self.scheduler.stop_claiming()
        return lease

    async def end_hands_on(self, lease_id: str | None) -> bool:
        """Take the seat back; False when nobody had it."""
        held = self.hands_on.release(lease_id, trio.current_time())
        await self._hands_back()
        return held

    async def _hands_back(self) -> None:
        if self._hands_told and self.hands_on.held(trio.current_time()) is None:
            self._hands_told = False
            self.needs_clean = True  # whatever the person left on the screen
            self.scheduler.wake()
            self.probe.hurry()
            await self._emit("seat.hands_on", {"held": False})

    # -- restarts ------------------------------------------------------------------------

    async def restart_app(self, *, dead_for: float, force: bool) -> int:
        """Restart the app for an action (see `bridge.flow.AppControl`)."""
        signing_in = self.launch_id is not None and self.known.login in LEAVE_ALONE
        if signing_in and not force:
            raise BridgeError(
                "INVALID_STATE",
                f"the app is at {self.known.login.value}: a restart would undo the sign-in; "
                "send force to restart it all the same",
                executed=False,
            )
        if self.scheduler.running is not None:
            self.scheduler.running.waits_for_restart = True
        await self.scheduler.mark_app_dead(dead_for)
        await self._emit("app.dead", {"why": "restart"})
        return (await self.restarter.restart()).child.pid

    async def reread_login(self) -> LoginState:
        """Read the sign-in state now and let it count (see `bridge.flow.AppControl`)."""
        for _ in range(REREADS):
            reading = await self.probe.read()
            if reading is not None:  # two readings agreed
                await self._on_reading(reading)
                return reading.state
        return LoginState.UNKNOWN

    async def rescue_app(self, why: str) -> None:
        """Restart an app that hangs: drain, interrupt what runs, mark it dead, restart."""
        self.known.hung = True
        drained = await self.scheduler.drain(DRAIN)
        log.warning("app is rescued", why=why, drained=drained)
        self.scheduler.interrupt()
        await self.scheduler.mark_app_dead(DEAD_WINDOW)
        await self._emit("app.dead", {"why": why})
        await self.restarter.restart()

    # -- what a flow's runner asks and tells ---------------------------------------------

    @property
    def closing(self) -> bool:
        """Whether the bridge is ending."""
        return self.known.closing

    @property
    def launch_id(self) -> str | None:
        """The app launch whose process lives now."""
        return self.restarter.launch_id

    async def app_gone(self) -> None:
        """Wait until no app process is up."""
        await self._app_gone.wait()

    def healthy(self) -> bool:
        """Whether display and app are well, as far as is known right now."""
        return self.known.display_alive and self.launch_id is not None

    def lease_check(self) -> None:
        """Raise LostFence when the worker's right may have ended."""
        self._lease_check()

    def step(self, action: Action, step: Step) -> None:
        """Tell those who watch."""
        self._hub.live(
            Event(
                seq=self._hub.last_seq,
                ts=step.at,
                type="action.step",
                seat=self.name,
                owner=action.owner,
                action=action.id,
                data={"name": step.name, "ms": step.ms, "ok": step.ok, "detail": step.detail},
                trace_id=action.trace_id,
            )
        )

    async def stuck(self, action: Action) -> None:
        """Tell that a flow ignores its cancellation."""
        self.known.stuck = True
        log.critical("flow ignores its cancellation", action=action.id)
        await self._emit("seat.stuck", {"action": action.id})

    def give_up(self) -> None:
        """End the process at once; its supervisor starts it anew."""
        log.critical("giving up", exit_code=EXIT_STUCK)
        os._exit(EXIT_STUCK)

    async def _emit(self, kind: str, data: Mapping[str, Any]) -> None:
        event = Event(0, self._clock.now_ms(), kind, self.name, f"seat:{self.name}", data=data)
        try:
            await self._store.emit([event])
        except BridgeError as error:  # an event more or less must not end a seat
            log.error("event not stored", type=kind, code=error.code)


class DisplayEnded(Exception):
    """Raised when the X server that we started is gone: display and app have to start anew."""
