"""Waiting for something outside that cannot tell us: look again until it is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def poll(look: Callable[[], Awaitable[T | None]], timeout: float) -> T | None:
    """What `look` returns once it is not None; None after `timeout` seconds.

    Waits 10, 20, 40, … at most 100 ms between looks. A look under way is not interrupted: it
    has a deadline of its own, and what it ends with says more than "not seen".
    """
    pause, deadline = 0.01, trio.current_time() + timeout
    while True:
        found = await look()
        now = trio.current_time()
        if found is not None or now >= deadline:
            return found
        await trio.sleep(min(pause, deadline - now))
        pause = min(0.1, pause * 2)
