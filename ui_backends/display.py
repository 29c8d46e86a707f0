"""Facts about a display, and its keyboard's settings, without a backend."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from Xlib import X
from Xlib.display import Display

from ui_backends import windows
from ui_backends.base import DisplayDead
from ui_backends.handshake import handshake
from ui_backends.xconn import XConnection, whole_property


@asynccontextmanager
async def connected(display: str) -> AsyncIterator[XConnection]:
    """A connection that is closed at the end."""
    connection = XConnection(display)
    try:
        yield connection
    finally:
        await connection.aclose()


async def display_answers(display: str, timeout: float = 2.0) -> bool:
    """Whether an X server answers there within `timeout` seconds; a refusal is an answer."""
    with trio.move_on_after(timeout + 0.5):
        try:
            await trio.to_thread.run_sync(handshake, display, timeout, abandon_on_cancel=True)
        except DisplayDead:
            return False
        return True
    return False


async def wm_running(display: str, timeout: float = 2.0) -> bool:
    """Whether a window manager runs (EWMH check window); False when the server does not answer."""
    try:
        async with connected(display) as connection:
            return await connection.call(windows.supporting_wm, timeout=timeout) is not None
    except DisplayDead:
        return False


async def autorepeat_off(display: str, timeout: float = 2.0) -> None:
    """Switch the server's key repeat off, for all clients. Raises DisplayDead."""
    async with connected(display) as connection:
        await connection.call(_autorepeat_off, timeout=timeout)


async def autorepeat(display: str, timeout: float = 2.0) -> bool:
    """Whether the server repeats keys that stay down. Raises DisplayDead."""
    async with connected(display) as connection:
        return await connection.call(_autorepeat, timeout=timeout)


def _autorepeat_off(display: Display) -> None:
    display.change_keyboard_control(auto_repeat_mode=X.AutoRepeatModeOff)
    display.sync()


def _autorepeat(display: Display) -> bool:
    return bool(display.get_keyboard_control().global_auto_repeat == X.AutoRepeatModeOn)


async def forget_a11y_bus(display: str, timeout: float = 2.0) -> bool:
    """Take an older accessibility bus's address off the root window; False when none was there.

    Programs believe it before they ask their session bus, and would sit on a bus that nobody
    reads. Raises DisplayDead.
    """
    async with connected(display) as connection:
        return await connection.call(_forget_a11y_bus, timeout=timeout)


def _forget_a11y_bus(display: Display) -> bool:
    root = display.screen().root
    atom = display.intern_atom("AT_SPI_BUS")
    there = whole_property(root, atom) is not None
    root.delete_property(atom)
    display.sync()
    return there
