"""Waiting for something outside that cannot tell us: look again until it is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def poll(look: Callable[[], Awaitable[T | None]], timeout: float) -> T | None:
    """What `look` returns once it is not None; None after `timeout` seconds.

    Waits 10, 20, 40, … at most 100 ms between looks.
    """
    pause = 0.01
    with trio.move_on_after(timeout):
        while True:
            found = await look()
            if found is not None:
                return found
            await trio.sleep(pause)
            pause = min(0.1, pause * 2)
    return None
