"""How the process ends: a signal asks, a second one and a deadline force."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import trio

FORCED_BY_DEADLINE = 70
"""Exit status when shutdown did not end in time."""

SAME_STROKE = 0.3
"""Seconds within which a second signal is taken for the first (a supervisor may signal both a
process and its group)."""


class _Signals:
    """First signal: set `closing`. A later one: end the process, whatever it is doing."""

    def __init__(self, closing: trio.Event) -> None:
        self._closing = closing
        self._token = trio.lowlevel.current_trio_token()
        self._first: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._first is None:
            self._first = now
            self._token.run_sync_soon(self._closing.set, idempotent=True)
        elif now - self._first > SAME_STROKE:
            _leave(128 + number, "a second signal")


def _leave(status: int, why: str) -> None:
    """End the process at once: no clean-up runs, no lock is waited for."""
    os.write(
        sys.__stderr__.fileno() if sys.__stderr__ else 2, f"leaving by force: {why}\n".encode()
    )
    os._exit(status)


@contextmanager
def _handling(handler: _Signals) -> Iterator[None]:
    before: dict[int, Any] = {
        number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """End the process in `seconds` from a thread of its own, unless the block ends before."""
    timer = threading.Timer(
        seconds, _leave, (FORCED_BY_DEADLINE, f"shutdown took more than {seconds:.0f} s")
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


async def watch_signals(
    closing: trio.Event,
    *,
    hard_deadline_s: float,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Set `closing` on SIGTERM or SIGINT; then see to it that the process does end.

    A second signal ends the process at once (status 128 + its number). `hard_deadline_s`
    seconds after `closing` was set, by whomever, it ends with FORCED_BY_DEADLINE. Runs until it
    is cancelled, which is to be the last thing of an orderly shutdown. Main thread only.
    """
    with _handling(_Signals(closing)):
        task_status.started()
        await closing.wait()
        with _deadline(hard_deadline_s):
            await trio.sleep_forever()
