"""The restarter: the one task of a seat that starts, adopts and stops the app."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog
import trio

from bridge.apps.base import Adapter
from bridge.process import Child, Record

log = structlog.get_logger(__name__)

QUICK_DEATH = 10.0
"""An app that lives shorter than this (seconds) counts against the budget."""

BUDGET = 6
"""Quick deaths in a row after which a person is needed."""


def backoff(quick_deaths: int) -> float:
    """Seconds before the next start: 0, 1, 2, 4, 8, 16 …, at most 60."""
    return 0.0 if quick_deaths <= 0 else float(min(60, 2 ** (quick_deaths - 1)))


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of the app. `at` is monotonic seconds; 0 for an adopted one."""

    id: str
    child: Child
    at: float


class AppObserver(Protocol):
    """Who is told what happens to the app."""

    async def app_started(self, launch: Launch, *, adopted: bool) -> None:
        """A process is there; its window need not be."""
        ...

    async def app_ended(self, launch: Launch) -> None:
        """The process has ended, whoever ended it."""
        ...

    async def app_needs_attention(self, why: str) -> None:
        """It will not be started again by itself."""
        ...


class Restarter:
    """Keeps one app running.

    `env` is asked at each start. The launch record in the state directory lets a later run
    adopt the process.
    """

    def __init__(
        self,
        *,
        adapter: Adapter,
        state_dir: Path,
        env: Callable[[], Mapping[str, str]],
        observer: AppObserver,
    ) -> None:
        self.launch: Launch | None = None
        self._adapter = adapter
        self._state_dir = state_dir
        self._env = env
        self._observer = observer
        self._record = Record(state_dir / "run" / "app.json")
        self._quick_deaths = 0

    @property
    def launch_id(self) -> str | None:
        """The id of the launch whose process lives now."""
        launch = self.launch
        return launch.id if launch is not None and launch.child.alive() else None

    async def adopt(self) -> bool:
        """Take charge of an app that an earlier run left running."""
        known = self._record.read()
        child = None if known is None else Child.adopt(known[0])
        if known is None or child is None:
            return False
        self.launch = Launch(str(known[1].get("launch", "")), child, 0.0)
        log.info("app adopted", pid=child.pid)
        await self._observer.app_started(self.launch, adopted=True)
        return True

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start the app unless it was adopted, and start it again whenever it ends."""
        task_status.started()
        while True:
            if self.launch is None and not await self._start():
                return
            assert self.launch is not None
            await self._watch(self.launch)

    async def _watch(self, launch: Launch) -> None:
        await launch.child.ended()
        lived = trio.current_time() - launch.at
        self._quick_deaths = self._quick_deaths + 1 if lived < QUICK_DEATH else 0
        log.warning("app ended", pid=launch.child.pid, lived_s=round(lived, 1))
        self.launch = None
        launch.child.close()
        await self._observer.app_ended(launch)

    async def _start(self) -> bool:
        if self._quick_deaths >= BUDGET:
            await self._observer.app_needs_attention(
                f"the app ended {self._quick_deaths} times within {QUICK_DEATH:g} s of its start"
            )
            return False
        await trio.sleep(backoff(self._quick_deaths))
        spec = self._adapter.launch()
        launch_id = uuid.uuid4().hex
        try:
            child = Child.start(
                spec.argv,
                env={**self._env(), **spec.env, "DESKBRIDGE_LAUNCH_ID": launch_id},
                log_file=self._state_dir / "log" / "app.log",
                cwd=spec.cwd,
            )
        except OSError as error:
            await self._observer.app_needs_attention(f"{spec.argv[0]} cannot be started: {error}")
            return False
        self._record.write(child.identity, launch=launch_id, started=int(time.time()))
        self.launch = Launch(launch_id, child, trio.current_time())
        log.info("app started", pid=child.pid, program=os.path.basename(spec.argv[0]))
        await self._observer.app_started(self.launch, adopted=False)
        return True

    async def stop(self) -> None:
        """End the app for good (the task that runs `run` must be gone). Bounded."""
        launch, self.launch = self.launch, None
        if launch is not None:
            await launch.child.stop(grace=2.0, kill_grace=1.0)
            launch.child.close()
        self._record.clear()
