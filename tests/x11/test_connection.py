"""The lasting X connection survives errors of every sort."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from Xlib import X, Xatom
from Xlib.display import Display

from tests.support.bounds import bounded
from tests.support.xserver import XServer
from ui_backends.base import CommandFailed
from ui_backends.windows import title_of
from ui_backends.xconn import XConnection


@bounded(30)
async def test_a_bad_value_is_one_failed_command(server: XServer) -> None:
    """Reading behind the end of a property is answered with BadValue."""
    connection = XConnection(server.display)

    def behind_the_end(display: Display) -> Any:
        root = display.screen().root
        root.change_property(Xatom.WM_NAME, Xatom.STRING, 8, b"short")
        return root.get_property(Xatom.WM_NAME, X.AnyPropertyType, 100, 10)

    try:
        with pytest.raises(CommandFailed):
            await connection.call(behind_the_end)
        root = await connection.call(lambda display: display.screen().root.id)
        assert await connection.call(lambda display: title_of(display, root)) == "short"
    finally:
        await connection.aclose()


@bounded(30)
async def test_a_defect_in_the_work_does_not_spoil_the_next_call(server: XServer) -> None:
    connection = XConnection(server.display)

    def defective(display: Display) -> None:
        raise AttributeError("a defect")

    try:
        with pytest.raises(AttributeError):
            await connection.call(defective)
        assert await connection.call(lambda display: display.screen().root.id)
    finally:
        await connection.aclose()


@bounded(60)
async def test_a_title_that_grows_and_shrinks_while_it_is_read(server: XServer) -> None:
    writer, reader = XConnection(server.display), XConnection(server.display)
    done = trio.Event()

    def make(display: Display) -> Any:
        return display.screen().root.create_window(0, 0, 9, 9, 0, X.CopyFromParent)

    def flip(display: Display) -> None:
        name = display.intern_atom("_NET_WM_NAME")
        text = display.intern_atom("UTF8_STRING")
        for n in range(400):
            window.change_property(name, text, 8, b"x" * (400 if n % 2 else 4))
            display.flush()
        display.sync()

    async def write() -> None:
        for _ in range(20):
            await writer.call(flip)
        done.set()

    try:
        window = await writer.call(make)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            while not done.is_set():
                title = await reader.call(lambda display: title_of(display, window.id))
                assert len(title) in {0, 4, 400}
    finally:
        await writer.aclose()
        await reader.aclose()
