"""Displays, backends and windows for these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.textwindow import TextWindow, text_window
from tests.support.xserver import XServer, desktop
from ui_backends.base import Backend
from ui_backends.xdotool import XdotoolBackend

BACKENDS = {"xdotool": XdotoolBackend}
STATE_ID = "x11-tests"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[XServer]:
    """Xvfb with icewm; X's own key repeat is on, the worse case."""
    async with desktop(tmp_path / "home") as running:
        yield running


@pytest.fixture(params=BACKENDS)
async def backend(request: pytest.FixtureRequest, server: XServer) -> AsyncIterator[Backend]:
    """Each backend on the same display."""
    made = BACKENDS[request.param](server.display, state_id=STATE_ID)
    try:
        yield made
    finally:
        await made.aclose()


@pytest.fixture
async def windows(server: XServer, backend: Backend, tmp_path: Path) -> AsyncIterator[Windows]:
    """Opens text windows that live as long as the test."""
    async with AsyncExitStack() as stack:
        yield Windows(stack, server, backend, tmp_path)


@pytest.fixture
async def window(windows: Windows) -> TextWindow:
    """One text window with the focus."""
    return await windows.open()


class Windows:
    """The factory behind the `windows` fixture."""

    def __init__(
        self, stack: AsyncExitStack, server: XServer, backend: Backend, folder: Path
    ) -> None:
        self._stack = stack
        self._server = server
        self._backend = backend
        self._folder = folder

    async def open(self, *options: str, title: str = "text") -> TextWindow:
        """Open a window and give it the focus unless it is hidden."""
        opened = await self._stack.enter_async_context(
            text_window(self._server, self._backend, self._folder, *options, title=title)
        )
        if opened.id:
            await self._backend.activate(opened.id)
        return opened
