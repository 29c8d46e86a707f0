"""The worlds that the conformance suite runs in: each backend on its own display, and the fake.

A test that asks for `server` needs a real display and is run with the real backends only.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.support.fakewindow import FakeTextWindow
from tests.support.textwindow import TextWindow, text_window
from tests.support.xserver import XServer, desktop
from ui_backends.base import Backend
from ui_backends.fake import FakeBackend
from ui_backends.xdotool import XdotoolBackend

BACKENDS = {"xdotool": XdotoolBackend}
STATE_ID = "x11-tests"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test in every world that it can run in."""
    if "world" in metafunc.fixturenames:
        real_only = "server" in metafunc.fixturenames
        metafunc.parametrize("world", [*BACKENDS, *([] if real_only else ["fake"])], indirect=True)


class World:
    """A backend and text windows that live as long as the test."""

    backend: Backend
    server: XServer | None = None

    async def open(self, *options: str, title: str = "text") -> TextWindow:
        """Open a window and give it the focus unless it is hidden.

        Options as of tests/x11/textapp.py.
        """
        raise NotImplementedError


class RealWorld(World):
    """Xvfb with icewm; X's own key repeat is on, the worse case."""

    def __init__(
        self, stack: AsyncExitStack, server: XServer, backend: Backend, folder: Path
    ) -> None:
        self.server = server
        self.backend = backend
        self._stack = stack
        self._folder = folder

    async def open(self, *options: str, title: str = "text") -> TextWindow:
        """A window of the real program."""
        opened = await self._stack.enter_async_context(
            text_window(self.server, self.backend, self._folder, *options, title=title)
        )
        if opened.id:
            await self.backend.activate(opened.id)
        return opened


class FakeWorld(World):
    """Everything in memory."""

    def __init__(self) -> None:
        self.backend = self._fake = FakeBackend()

    async def open(self, *options: str, title: str = "text") -> FakeTextWindow:
        """A window of the fake."""
        named = dict.fromkeys(options, "")
        named |= dict(itertools.pairwise(options))
        return FakeTextWindow(self._fake, named, title)


@pytest.fixture
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """The world of `request.param`: a key of BACKENDS, or "fake"."""
    if request.param == "fake":
        yield FakeWorld()
        return
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(desktop(tmp_path / "home"))
        made = BACKENDS[request.param](server.display, state_id=STATE_ID)
        stack.push_async_callback(made.aclose)
        yield RealWorld(stack, server, made, tmp_path)


@pytest.fixture
def server(world: World) -> XServer:
    """The display of a real world."""
    assert world.server is not None
    return world.server


@pytest.fixture
def backend(world: World) -> Backend:
    """The world's backend."""
    return world.backend


@pytest.fixture
def windows(world: World) -> World:
    """What opens windows."""
    return world


@pytest.fixture
async def window(world: World) -> TextWindow:
    """One text window with the focus."""
    return await world.open()
