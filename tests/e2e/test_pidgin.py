"""Pidgin itself, on a display of its own, against a real XMPP server; a peer sees what arrives."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
from PIL import Image

from bridge.apps.base import AppSettings, Found, Verdict
from bridge.apps.pidgin import PidginAdapter
from bridge.errors import BridgeError
from bridge.flow import FlowContext, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import SendText
from bridge.model import Json, LoginState, Step
from tests.support.xmpp import BOB, BOBBY, NAMELESS, OWNER_JID, TWINS, XmppWorld, xmpp_world
from tests.support.xserver import XServer, desktop, end
from ui_backends.xdotool import XdotoolBackend, open_xdotool


class Allowed:
    """A permit that lets everything through."""

    def check(self) -> None:
        return


@dataclass
class Commit:
    """Notes the mark, looks again, presses. `before` and `after` are moments to disturb in."""

    before: Callable[[], Awaitable[None]] | None = None
    after: Callable[[], Awaitable[None]] | None = None
    mark: Mapping[str, Json] | None = None
    handed_over: bool = False

    async def __call__(
        self,
        mark: Mapping[str, Json],
        *,
        recheck: Callable[[], Awaitable[None]],
        act: Callable[[], Awaitable[None]],
    ) -> None:
        self.mark = mark
        if self.before:
            await self.before()
        await recheck()
        self.handed_over = True
        await act()
        if self.after:
            await self.after()


@dataclass
class Bench:
    """Pidgin on its display with everything around it."""

    world: XmppWorld
    screen: XServer
    backend: XdotoolBackend
    adapter: PidginAdapter
    app: trio.Process | None = None
    pictures: dict[str, Image.Image] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    @property
    def hands(self) -> Hands:
        return Hands(
            self.backend, permit=Allowed(), on_step=self.steps.append, wall_ms=lambda: 0
        )

    async def launch(self) -> None:
        spec = self.adapter.launch()
        home = self.world.state_dir / "home"
        home.mkdir(exist_ok=True)
        self.app = await trio.lowlevel.open_process(
            list(spec.argv),
            env=self.screen.env(HOME=str(home), DBUS_SESSION_BUS_ADDRESS="disabled:", **spec.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def stop(self) -> None:
        if self.app is not None:
            await end(self.app)

    async def state(self, wanted: LoginState, *, timeout: float = 20) -> None:
        """Wait until the probe reads `wanted`."""
        reading = None
        with trio.move_on_after(timeout):
            while True:
                reading = await self.adapter.probe(Eyes(self.backend))
                if reading.state is wanted:
                    return
                await trio.sleep(0.05)
        raise AssertionError(f"{wanted} was not read; the last was {reading}")

    async def send(
        self, to: str, text: str, commit: Commit | None = None
    ) -> Mapping[str, Json]:
        async def save(name: str, picture: Image.Image) -> str:
            self.pictures[name] = picture
            return name

        context = FlowContext(
            "a1", 1, SendText(to=to, text=text), self.hands, commit or Commit(), save
        )
        return await self.adapter.flows["send_text"].run(context)

    async def verify(self, text: str, commit: Commit, *, app_ended: bool) -> Verdict:
        async def load(name: str) -> Image.Image | None:
            return self.pictures.get(name)

        assert commit.mark is not None
        params = SendText(to="unused", text=text)
        eyes = Eyes(self.backend)
        context: VerifyContext[Any] = VerifyContext(
            "a1", params, commit.mark, eyes, app_ended, load
        )
        return await self.adapter.flows["send_text"].verify(context)


@asynccontextmanager
async def bench(folder: Path, **seed: Any) -> AsyncIterator[Bench]:
    """Server, peer, display and a Pidgin that was just launched."""
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(xmpp_world(folder, **seed))
        screen = await stack.enter_async_context(desktop(folder / "wm"))
        backend = await stack.enter_async_context(open_xdotool(screen.display, state_id="test"))
        adapter = PidginAdapter(AppSettings(world.state_dir, os.environ))
        one = Bench(world, screen, backend, adapter)
        stack.push_async_callback(one.stop)
        await one.launch()
        yield one


@asynccontextmanager
async def online(folder: Path) -> AsyncIterator[Bench]:
    """The same, signed in and tidy."""
    async with bench(folder) as one:
        await one.state(LoginState.LOGGED_IN)
        await one.adapter.clean_screen(one.hands)
        yield one


async def test_text_arrives_exactly_once(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            result = await one.send("Bob", "hello 你好 🎉")
            assert result["to"] == BOB.jid
            assert await one.world.peer.arrived(1) == [("bob", "hello 你好 🎉")]
