"""Two clocks: the monotonic one (`trio.current_time`, seconds) for waiting, and this for rows."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import trio


def rfc3339(ms: int | None) -> str | None:
    """UTC milliseconds as RFC 3339, such as `2026-01-31T12:00:00.250Z`."""
    if ms is None:
        return None
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


class WallClock:
    """UTC milliseconds from the system's clock; may jump."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


class VirtualWallClock(WallClock):
    """A wall clock that follows Trio's clock, for virtual time; `shift_ms` plays a clock step."""

    def __init__(self, start_ms: int = 1_800_000_000_000) -> None:
        self._start_ms = start_ms
        self._begun = trio.current_time()
        self.shift_ms = 0

    def now_ms(self) -> int:
        """Milliseconds since 1970, as far as this clock is concerned."""
        return self._start_ms + round((trio.current_time() - self._begun) * 1000) + self.shift_ms
