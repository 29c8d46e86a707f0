"""The watchdog: finds an app that hangs or has lost its window, and has it restarted.

An app that ends is the restarter's own business; an X server that does not answer is reported
and never a reason to touch the app.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
import trio

from bridge.errors import BridgeError
from bridge.hands import Eyes
from bridge.model import LoginState
from bridge.process import descendants
from ui_backends.base import Ping, Window

log = structlog.get_logger(__name__)

FAILURES = 2
"""Bad findings in a row after which the app is restarted."""

PING_PATIENCE = 3.0
"""Seconds in which a healthy app answers, also on a busy machine."""

LEAVE_ALONE = frozenset({LoginState.QR, LoginState.CONFIRM, LoginState.STARTING})
"""A restart in these states would undo a sign-in."""


class Finding(enum.Enum):
    """What one look at the app found."""

    WELL = "well"
    NO_DISPLAY = "the X server does not answer"
    NO_WINDOW = "the app has no window"
    SILENT = "the app does not answer"


@dataclass(slots=True)
class Patience:
    """Counts bad findings in a row; pure."""

    failures: int = 0

    def note(self, finding: Finding, login: LoginState) -> bool:
        """Take a finding in; True when the app is to be restarted now."""
        if finding in {Finding.WELL, Finding.NO_DISPLAY}:
            self.failures = 0
            return False
        self.failures += 1
        if login in LEAVE_ALONE or self.failures < FAILURES:
            return False
        self.failures = 0
        return True


async def look(eyes: Eyes, pid: int, answered: set[int]) -> Finding:
    """Look at the windows of the app whose main process is `pid`, and ask one for an answer.

    `answered` holds the windows that have answered before and is added to: some toolkits answer
    without announcing that they would, and their silence counts only once they have spoken.
    """
    try:
        windows = await eyes.windows()
    except BridgeError:
        return Finding.NO_DISPLAY
    family = {pid, *descendants(pid)}
    own = [w for w in windows if w.pid in family and w.viewable and w.managed]
    if not own:
        return Finding.NO_WINDOW
    try:
        return await _ask(eyes, max(own, key=_area), answered)
    except BridgeError as error:
        # it closed its window under our eyes; the next look tells more
        return Finding.WELL if error.code == "WINDOW_NOT_FOUND" else Finding.NO_DISPLAY


async def _ask(eyes: Eyes, window: Window, answered: set[int]) -> Finding:
    answer = await eyes.ping(window.id, PING_PATIENCE)
    if answer is Ping.ALIVE:
        answered.add(window.id)
        return Finding.WELL
    if answer is Ping.SILENT or window.id in answered:
        return Finding.SILENT
    return Finding.WELL


def _area(window: Window) -> int:
    return window.region.width * window.region.height


class Watchdog:
    """Looks every `interval` seconds and calls `rescue` with what was found.

    Args:
        pid: the app's main process; None while there is none.
        login: the sign-in state as the probe read it last.
    """

    def __init__(
        self,
        *,
        eyes: Eyes,
        interval: float,
        pid: Callable[[], int | None],
        login: Callable[[], LoginState],
        rescue: Callable[[str], Awaitable[None]],
    ) -> None:
        self._eyes = eyes
        self._interval = interval
        self._pid = pid
        self._login = login
        self._rescue = rescue
        self.looks = 0
        """How often it has looked since the bridge started."""
        self.finding: Finding | None = None
        """What the last look found."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Watch until cancelled."""
        task_status.started()
        patience, watched = Patience(), None
        answered: set[int] = set()
        while True:
            await trio.sleep(self._interval)
            pid = self._pid()
            if pid != watched:  # another process: what was found of the last one is void
                patience, watched = Patience(), pid
                answered.clear()
            if pid is None:
                continue
            finding = await look(self._eyes, pid, answered)
            self.looks, self.finding = self.looks + 1, finding
            if finding is not Finding.WELL:
                log.warning("watchdog", finding=finding.value, login=self._login().value)
            if patience.note(finding, self._login()):
                await self._rescue_once(finding.value)

    async def _rescue_once(self, why: str) -> None:
        try:
            await self._rescue(why)
        except BridgeError as error:
            log.error("rescue failed", code=error.code, detail=error.detail)
