"""A deadline for every test, and waiting for what happens in other processes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import ParamSpec

import trio

P = ParamSpec("P")


async def until(condition: Callable[[], object]) -> object:
    """Wait until `condition()` (or what it returns, awaited) is true, and return that."""
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        await trio.sleep(0.01)


def bounded(
    seconds: float,
) -> Callable[[Callable[P, Awaitable[None]]], Callable[P, Awaitable[None]]]:
    """Fail an async test that takes longer."""

    def wrap(test: Callable[P, Awaitable[None]]) -> Callable[P, Awaitable[None]]:
        @functools.wraps(test)
        async def within(*args: P.args, **kwargs: P.kwargs) -> None:
            with trio.fail_after(seconds):
                await test(*args, **kwargs)

        return within

    return wrap
