"""Who gets the text: the app of the armed window, for this paste, and nobody else."""

from __future__ import annotations

import pytest
import trio
from Xlib import X, Xatom
from Xlib.display import Display

from tests.support.bounds import bounded, until
from tests.support.textwindow import TextWindow
from tests.support.xserver import XServer
from tests.x11.conftest import World
from ui_backends.base import Backend
from ui_backends.clipboard import Clipboard
from ui_backends.display import connected
from ui_backends.process import run
from ui_backends.selection import read_selection

SECRET = "for one window only"


def owner(display: Display) -> int:
    found = display.get_selection_owner(display.intern_atom("CLIPBOARD"))
    return X.NONE if found == X.NONE else found.id


async def nobody_owns_it(server: XServer) -> bool:
    async with connected(server.display) as connection:
        return await connection.call(owner) == X.NONE


@bounded(60)
async def test_a_foreign_client_that_asks_gets_nothing(server: XServer, window: TextWindow) -> None:
    clipboard = Clipboard(server.display)
    async with connected(server.display) as foreign:
        async with clipboard.offered(window.id, SECRET, 5) as paste:
            assert await foreign.call(owner) != X.NONE
            assert await foreign.call(lambda d: read_selection(d, 1)) is None
            done = await run(
                ["xclip", "-o", "-selection", "clipboard"], timeout=5, env=server.env()
            )
            assert done.stdout == b""
            assert not paste.offer.begun
        await until(lambda: nobody_owns_it(server))
    await clipboard.aclose()


@bounded(60)
async def test_the_app_of_the_window_gets_it_and_then_it_is_taken_back(
    server: XServer, backend: Backend, window: TextWindow
) -> None:
    await backend.paste_text(window.id, SECRET)
    await window.shows(SECRET)
    await until(lambda: nobody_owns_it(server))
    # a person's own Ctrl+V afterwards pastes nothing
    await backend.chord("ctrl", "v", window=window.id)
    await window.settle()
    assert window.text == SECRET


@bounded(60)
async def test_a_second_app_does_not_get_what_was_offered_to_the_first(
    server: XServer, windows: World, backend: Backend
) -> None:
    one, two = await windows.open(title="one"), await windows.open(title="two")
    clipboard = Clipboard(server.display)
    async with clipboard.offered(one.id, SECRET, 5) as paste:
        await backend.activate(two.id)
        await backend.chord("ctrl", "v", window=two.id)
        await two.settle()
        assert two.text == ""
        await backend.activate(one.id)
        await backend.chord("ctrl", "v", window=one.id)
        assert await paste.read(5, trio.current_time() + 5)
    await one.shows(SECRET)
    await clipboard.aclose()


@bounded(60)
async def test_another_owner_ends_the_offer_and_keeps_its_own_text(
    server: XServer, window: TextWindow, backend: Backend
) -> None:
    clipboard = Clipboard(server.display)
    async with (
        clipboard.offered(window.id, SECRET, 5) as paste,
        trio.open_nursery() as nursery,
    ):
        await own_by_xclip(nursery, server)
        begun = trio.current_time()
        assert not await paste.read(10, trio.current_time() + 10)
        assert trio.current_time() - begun < 5
        assert paste.offer.lost
        await backend.paste_text(window.id, "ours")
        await window.shows("ours")
        nursery.cancel_scope.cancel()
    await clipboard.aclose()


@bounded(60)
async def test_somebody_elses_clipboard_can_be_read(server: XServer, backend: Backend) -> None:
    assert await backend.clipboard() is None
    async with trio.open_nursery() as nursery:
        await own_by_xclip(nursery, server)
        assert await backend.clipboard() == "xclip's 好 text"
        await own_by_xclip(nursery, server, "long 好 " * 100_000)
        assert await backend.clipboard() == "long 好 " * 100_000
        nursery.cancel_scope.cancel()


async def own_by_xclip(
    nursery: trio.Nursery, server: XServer, text: str = "xclip's 好 text"
) -> None:
    """Let xclip own the clipboard until the nursery ends."""
    async with connected(server.display) as connection:
        before = await connection.call(owner)

        async def serve() -> None:
            await trio.run_process(
                ["xclip", "-quiet", "-i", "-selection", "clipboard"],
                stdin=text.encode(),
                env=server.env(),
                check=False,
            )

        async def taken() -> bool:
            return await connection.call(owner) not in (before, X.NONE)

        nursery.start_soon(serve)
        await until(taken)


class Asker:
    """A bare client with a window, that asks for the clipboard at a time of its choice."""

    def __init__(self) -> None:
        self.window = 0
        self.opened_at = 0

    def open(self, display: Display) -> None:
        window = display.screen().root.create_window(
            0, 0, 1, 1, 0, X.CopyFromParent, event_mask=X.PropertyChangeMask
        )
        window.change_property(Xatom.WM_NAME, Xatom.STRING, 8, b"asker")
        self.opened_at = display.next_event().time
        self.window = window.id

    def ask(self, display: Display, target: str, time: int) -> bytes | None:
        """The answer's bytes, None when it is refused."""
        window = display.create_resource_object("window", self.window)
        into = display.intern_atom("INTO")
        selection = display.intern_atom("CLIPBOARD")
        window.convert_selection(selection, display.intern_atom(target), into, time)
        while (answer := display.next_event()).type != X.SelectionNotify:
            pass
        if answer.property == X.NONE:
            return None
        value = window.get_full_property(into, X.AnyPropertyType).value
        return value if isinstance(value, bytes) else bytes(value)


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("UTF8_STRING", "é 好".encode()),
        ("text/plain;charset=utf-8", "é 好".encode()),
        ("text/html", None),
        ("image/png", None),
        ("STRING", None),  # Latin-1, which cannot hold this text
        ("MULTIPLE", None),
    ],
)
@bounded(60)
async def test_what_is_offered_is_text_and_nothing_else(
    server: XServer, target: str, answer: bytes | None
) -> None:
    clipboard, asker = Clipboard(server.display), Asker()
    async with connected(server.display) as client:
        await client.call(asker.open)
        async with clipboard.offered(asker.window, "é 好", 5):
            assert await client.call(lambda d: asker.ask(d, target, X.CurrentTime)) == answer
    await clipboard.aclose()


@bounded(60)
async def test_a_request_older_than_the_offer_belongs_to_an_earlier_paste(
    server: XServer,
) -> None:
    clipboard, asker = Clipboard(server.display), Asker()
    async with connected(server.display) as client:
        await client.call(asker.open)
        async with clipboard.offered(asker.window, "text", 5) as paste:
            old = asker.opened_at - 1
            assert await client.call(lambda d: asker.ask(d, "STRING", old)) is None
            assert not paste.offer.begun
            assert await client.call(lambda d: asker.ask(d, "STRING", X.CurrentTime)) == b"text"
            assert paste.offer.done
    await clipboard.aclose()
