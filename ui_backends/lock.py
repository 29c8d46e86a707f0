"""L1: one lock per display, held for the length of a single UI command.

A command that ends otherwise than planned may leave keys down, and X repeats them. Such a
command leaves the lock dirty, and before anybody else presses something every key and button is
released.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog
import trio

from ui_backends.base import DisplayDead, UiError

LONG_WAIT = 2.0
"""Seconds of waiting for the lock above which the wait is logged and counted."""

CLEAN_DEADLINE = 2.0
"""Seconds that releasing all keys may take."""

_log = structlog.get_logger("ui_backends.lock")


@dataclass(frozen=True, slots=True)
class LockStatistics:
    """What the lock saw so far. `holder` is the command that runs now."""

    commands: int
    waits_over_2s: int
    wait_seconds_sum: float
    cleanings: int
    cleanings_failed: int
    dirty: bool
    holder: str | None


class DisplayLock:
    """The lock of one display; every backend of that display shares it.

    Args:
        display: the X display's name, for logs.
        cleaner: releases every key and button; may raise. See `use_cleaner`.
        dirty: start dirty, so that the first command cleans.
    """

    def __init__(
        self,
        display: str,
        *,
        cleaner: Callable[[], Awaitable[object]] | None = None,
        dirty: bool = False,
    ) -> None:
        self.display = display
        self._cleaner = cleaner
        self._lock = trio.Lock()
        # True from a command that may have left something down until a cleaning went well.
        self._dirty = dirty
        # The name of the command that holds the lock, None while it is free.
        self._holder: str | None = None
        self._commands = self._long_waits = self._cleanings = self._failed = 0
        self._waited = 0.0

    def __repr__(self) -> str:
        return f"<DisplayLock {self.display} holder={self._holder} dirty={self._dirty}>"

    def use_cleaner(self, cleaner: Callable[[], Awaitable[object]]) -> None:
        """Set what releases keys and buttons. It must not take the lock."""
        self._cleaner = cleaner

    def statistics(self) -> LockStatistics:
        """A snapshot of the figures."""
        return LockStatistics(
            commands=self._commands,
            waits_over_2s=self._long_waits,
            wait_seconds_sum=self._waited,
            cleanings=self._cleanings,
            cleanings_failed=self._failed,
            dirty=self._dirty,
            holder=self._holder,
        )

    @asynccontextmanager
    async def command(self, name: str, *, presses: bool = True) -> AsyncIterator[None]:
        """Hold the display for one command.

        `presses` tells that the command sends input: its failure leaves the lock dirty, unless
        the error says that nothing was executed. Raises DisplayDead, before the command runs,
        when an earlier command's keys still cannot be released.
        """
        await self._acquire(name)
        try:
            if self._dirty and not await self._clean():
                raise DisplayDead("the keys of an earlier command could not be released")
            try:
                yield
            except UiError as error:
                self._dirty |= presses and error.executed
                raise
            except BaseException:
                self._dirty |= presses
                raise
            finally:
                if self._dirty:
                    await self._clean()
        finally:
            self._holder = None
            self._lock.release()

    async def _acquire(self, name: str) -> None:
        begun = trio.current_time()
        try:
            await self._lock.acquire()
        finally:
            waited = trio.current_time() - begun
            self._waited += waited
            if waited > LONG_WAIT:
                self._long_waits += 1
                _log.warning(
                    "display_lock.long_wait",
                    display=self.display,
                    command=name,
                    waited=round(waited, 3),
                    holder=self._holder,
                )
        self._holder = name
        self._commands += 1

    async def _clean(self) -> bool:
        """Release everything; shielded, since the next holder must not find a key down."""
        if self._cleaner is None:
            self._dirty = False
            return True
        self._cleanings += 1
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_DEADLINE):
                await self._cleaner()
                self._dirty = False
        except UiError as error:
            _log.warning("display_lock.clean_failed", display=self.display, error=repr(error))
        if self._dirty:
            self._failed += 1
        return not self._dirty
