"""The probe: reads the app's sign-in state beside the queue, under the display lock only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import trio

from bridge.apps.base import Adapter, Reading
from bridge.errors import BridgeError
from bridge.hands import Eyes
from bridge.model import LoginState

log = structlog.get_logger(__name__)

CONFIRM_AFTER = 0.2
"""Seconds until a changed reading is repeated; it counts if both agree."""

EAGER = 0.25
"""Seconds between readings while the app comes up."""

READ_DEADLINE = 8.0
"""Seconds that one reading may take."""

STARTING_LIMIT = 60.0
"""Seconds after which an app that still seems to start is `unknown`."""


class Probe:
    """Calls `on_reading` with every reading that counts (also one that says the same).

    Args:
        interval: seconds between readings; shorter while `coming_up()`.
    """

    def __init__(
        self,
        *,
        adapter: Adapter,
        eyes: Eyes,
        interval: float,
        coming_up: Callable[[], bool],
        on_reading: Callable[[Reading], Awaitable[None]],
    ) -> None:
        self._adapter = adapter
        self._eyes = eyes
        self._interval = interval
        self._coming_up = coming_up
        self._on_reading = on_reading
        self._last: Reading | None = None
        self._starting_since: float | None = None
        self._hurry = trio.Event()

    def hurry(self) -> None:
        """Read now rather than at the next interval."""
        self._hurry.set()
        self._hurry = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Read until cancelled."""
        task_status.started()
        while True:
            hurry = self._hurry
            reading = await self.read()
            if reading is not None:
                await self._tell(reading)
            with trio.move_on_after(EAGER if self._coming_up() else self._interval):
                await hurry.wait()

    async def _tell(self, reading: Reading) -> None:
        try:
            await self._on_reading(reading)
        except BridgeError as error:  # the store is away for a while; the next reading tells again
            log.error("reading not taken in", code=error.code, detail=error.detail)

    async def read(self) -> Reading | None:
        """One reading; a changed one is repeated and None if the two differ."""
        reading = await self._once()
        if self._last is None or _key(reading) != _key(self._last):
            await trio.sleep(CONFIRM_AFTER)
            again = await self._once()
            if _key(again) != _key(reading):
                return None
            log.info("sign-in state", state=again.state.value, account=again.account)
            reading = again
        self._last = reading
        return self._limited(reading)

    async def _once(self) -> Reading:
        with trio.move_on_after(READ_DEADLINE):
            try:
                return await self._adapter.probe(self._eyes)
            except BridgeError as error:
                return Reading(LoginState.UNKNOWN, evidence={"error": error.code})
            except Exception as error:  # a defect in an adapter must not end the seat
                log.exception("probe failed")
                return Reading(LoginState.UNKNOWN, evidence={"error": repr(error)})
        return Reading(LoginState.UNKNOWN, evidence={"error": "STEP_TIMEOUT"})

    def _limited(self, reading: Reading) -> Reading:
        if reading.state is not LoginState.STARTING:
            self._starting_since = None
            return reading
        now = trio.current_time()
        if self._starting_since is None:
            self._starting_since = now
        if now - self._starting_since > STARTING_LIMIT:
            return Reading(LoginState.UNKNOWN, reading.account, reading.evidence)
        return reading


def _key(reading: Reading) -> tuple[LoginState, str | None]:
    return reading.state, reading.account
