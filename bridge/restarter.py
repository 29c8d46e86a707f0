"""The restarter: the one task of a seat that starts, adopts and stops the app.

Watchdog and actions ask it and wait; a second request joins the first.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog
import trio

from bridge.apps.base import Adapter
from bridge.errors import BridgeError
from bridge.polling import poll
from bridge.process import Child, Identity, Record

log = structlog.get_logger(__name__)

QUICK_DEATH = 10.0
"""An app that lives shorter than this (seconds) counts against the budget."""

BUDGET = 6.0
"""Strikes after which a person is needed: one for a death before the app was ready."""

READY_STRIKE = 0.1
"""Strikes for a quick death of an app that was ready: somebody may have killed it."""

READY_PATIENCE = 45.0
"""Seconds in which an app that was started on request must be ready."""

EXTERNAL_PATIENCE = 10.0
"""Seconds in which another supervisor's process must show up before the bridge starts one."""

STOP_GRACE = 5.0
"""Seconds between TERM and KILL when a restart was asked for."""


def backoff(strikes: float) -> float:
    """Seconds before the next start: 0, 1, 2, 4, 8, 16 …, at most 60."""
    return 0.0 if strikes < 1 else float(min(60, 2 ** (int(strikes) - 1)))


def strikes_after(strikes: float, *, lived: float, was_ready: bool, asked: bool) -> float:
    """The strikes after a run of `lived` seconds ended; a long run clears them."""
    if asked or lived >= QUICK_DEATH:
        return 0.0
    return round(strikes + (READY_STRIKE if was_ready else 1.0), 3)


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of the app. `at` is monotonic seconds; 0 for an adopted one.

    `ready` is set by whoever sees that the app can be worked with. `ours` tells that this
    bridge or an earlier run started it, so that it ends with the bridge.
    """

    id: str
    child: Child
    at: float
    ours: bool = True
    ready: trio.Event = field(default_factory=trio.Event)


class AppObserver(Protocol):
    """Who is told what happens to the app."""

    async def app_started(self, launch: Launch, *, adopted: bool) -> None:
        """A process is there; its window need not be."""
        ...

    async def app_ended(self, launch: Launch, *, asked: bool) -> None:
        """The process has ended: on request, or by itself or somebody's hand."""
        ...

    async def app_needs_attention(self, why: str) -> None:
        """It will not be started again by itself."""
        ...


@dataclass(slots=True)
class _Request:
    """A restart that was asked for; `done` comes with `launch` or `error`."""

    stopped: bool = False
    done: trio.Event = field(default_factory=trio.Event)
    launch: Launch | None = None
    error: str | None = None


class Restarter:
    """Keeps one app running.

    `env` is asked at each start. The launch record in the state directory lets a later run
    adopt the process. `find` looks for one that somebody else started; with `external` it is
    waited for before the bridge starts one itself.
    """

    def __init__(
        self,
        *,
        adapter: Adapter,
        state_dir: Path,
        env: Callable[[], Mapping[str, str]],
        observer: AppObserver,
        find: Callable[[], Awaitable[Identity | None]] | None = None,
        external: bool = False,
    ) -> None:
        self.launch: Launch | None = None
        self.restarts_total = 0
        self._adapter = adapter
        self._state_dir = state_dir
        self._env = env
        self._observer = observer
        self._find = find
        self._external = external
        self._record = Record(state_dir / "run" / "app.json")
        self._strikes = 0.0
        self._request: _Request | None = None
        self._asked = trio.Event()

    @property
    def launch_id(self) -> str | None:
        """The id of the launch whose process lives now."""
        launch = self.launch
        return launch.id if launch is not None and launch.child.alive() else None

    async def adopt(self) -> bool:
        """Take charge of an app that runs: an earlier run's by its record, else by its window."""
        known = self._record.read()
        if known is not None:
            identity, facts = known
            ours = bool(facts.get("ours", 1))
            return await self._take(identity, str(facts.get("launch", "")), ours=ours)
        found = None if self._find is None else await self._find()
        return found is not None and await self._take(found, uuid.uuid4().hex, ours=False)

    async def _take(self, identity: Identity, launch_id: str, *, ours: bool) -> bool:
        child = Child.adopt(identity)
        if child is None:
            return False
        self._remember(identity, launch_id, ours=ours)
        self.launch = Launch(launch_id, child, 0.0, ours)
        log.info("app adopted", pid=child.pid)
        await self._observer.app_started(self.launch, adopted=True)
        return True

    def _remember(self, identity: Identity, launch_id: str, *, ours: bool) -> None:
        try:
            self._record.write(identity, launch=launch_id, started=int(time.time()), ours=int(ours))
        except OSError as error:  # a full disk: this run knows it, the next one would not
            log.error("launch not recorded", error=str(error))

    async def _adopt_external(self) -> bool:
        """Wait for the process of another supervisor."""
        if not self._external or self._find is None:
            return False
        found = await poll(self._find, EXTERNAL_PATIENCE)
        return found is not None and await self._take(found, uuid.uuid4().hex, ours=False)

    async def restart(self) -> Launch:
        """Have the app stopped and started anew; returns once it is ready.

        Raises APP_NOT_READY when it does not get ready.
        """
        request = self._request
        if request is None:
            request = self._request = _Request()
            self._asked.set()
        await request.done.wait()
        if request.launch is None:
            raise BridgeError("APP_NOT_READY", request.error or "the app did not start")
        return request.launch

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start the app unless it was adopted, and start it again whenever it ends."""
        task_status.started()
        while True:
            if self.launch is None and not await self._start():
                await self._asked.wait()  # only a person's restart helps now
                self._strikes = 0.0
                self._asked = trio.Event()
                if self._request is not None:
                    self._request.stopped = True
                continue
            assert self.launch is not None
            await self._live(self.launch)

    async def _live(self, launch: Launch) -> None:
        """See one run of the app to its end, or end it when a restart is asked for."""
        asked = False
        async with trio.open_nursery() as nursery:

            async def when_asked() -> None:
                nonlocal asked
                await self._asked.wait()
                asked = True
                nursery.cancel_scope.cancel()

            nursery.start_soon(when_asked)
            nursery.start_soon(self._report_ready, launch)
            await launch.child.ended()
            nursery.cancel_scope.cancel()
        if asked:
            self._asked = trio.Event()
            self.restarts_total += 1
            await launch.child.stop(grace=STOP_GRACE)
            if self._request is not None:
                self._request.stopped = True
        await self._bury(launch, asked=asked)

    async def _report_ready(self, launch: Launch) -> None:
        """Answer those who asked for this launch."""
        request = self._request
        if request is None or not request.stopped:
            return
        with trio.move_on_after(READY_PATIENCE):
            await launch.ready.wait()
        if launch.ready.is_set():
            self._answer(launch, None)
        else:
            self._answer(None, f"the app was started but not ready within {READY_PATIENCE:g} s")

    def _answer(self, launch: Launch | None, error: str | None) -> None:
        request, self._request = self._request, None
        if request is not None:
            request.launch, request.error = launch, error
            request.done.set()

    async def _bury(self, launch: Launch, *, asked: bool) -> None:
        lived = trio.current_time() - launch.at
        self._strikes = strikes_after(
            self._strikes, lived=lived, was_ready=launch.ready.is_set(), asked=asked
        )
        log.warning("app ended", pid=launch.child.pid, lived_s=round(lived, 1), asked=asked)
        self.launch = None
        launch.child.close()
        await self._observer.app_ended(launch, asked=asked)

    async def _start(self) -> bool:
        if self._strikes >= BUDGET:
            await self._give_up(f"the app ends again and again within {QUICK_DEATH:g} s")
            return False
        await trio.sleep(backoff(self._strikes))
        if await self._adopt_external():
            return True
        launch_id = uuid.uuid4().hex
        spec = self._adapter.launch()
        try:
            self._adapter.prepare()
            child = Child.start(
                spec.argv,
                env={**self._env(), **spec.env, "DESKBRIDGE_LAUNCH_ID": launch_id},
                log_file=self._state_dir / "log" / "app.log",
                cwd=spec.cwd,
            )
        except OSError as error:
            await self._give_up(f"{spec.argv[0]} cannot be started: {error}")
            return False
        self._remember(child.identity, launch_id, ours=True)
        self.launch = Launch(launch_id, child, trio.current_time())
        log.info("app started", pid=child.pid, program=os.path.basename(spec.argv[0]))
        await self._observer.app_started(self.launch, adopted=False)
        return True

    async def _give_up(self, why: str) -> None:
        self._answer(None, why)
        await self._observer.app_needs_attention(why)

    async def stop(self) -> None:
        """End the app for good, unless it is somebody else's. Bounded.

        The task that runs `run` must be gone.
        """
        launch, self.launch = self.launch, None
        if launch is not None:
            if launch.ours:
                await launch.child.stop(grace=2.0, kill_grace=1.0)
            launch.child.close()
        self._record.clear()
