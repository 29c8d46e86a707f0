"""The demo app on a display of its own, worked through the real adapter and backend."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trio
from PIL import Image

from bridge.apps.base import AppSettings, Found, Reading, Verdict
from bridge.apps.demo import DemoAdapter
from bridge.apps.demo_screen import look
from bridge.apps.demo_view import View
from bridge.demoapp import arrivals, faults, journal, phone
from bridge.files import Files
from bridge.flow import AppControl, FlowContext, NoControl, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import CATALOGUE, SendText
from bridge.model import Json, LoginState, Step
from bridge.polling import poll
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
class Demo:
    """The app, what works it, and what it wrote down."""

    screen: XServer
    backend: XdotoolBackend
    state_dir: Path
    env: Mapping[str, str]
    app: trio.Process | None = None
    pictures: dict[str, Image.Image] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.adapter = DemoAdapter(AppSettings(self.state_dir, self.env))
        self.files = Files(self.state_dir, [self.state_dir / "outbox"])

    @property
    def hands(self) -> Hands:
        return Hands(self.backend, permit=Allowed(), on_step=self.steps.append, wall_ms=lambda: 0)

    async def launch(self) -> None:
        spec = self.adapter.launch()
        log = self.state_dir / "app.log"
        self.state_dir.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            self.app = await trio.lowlevel.open_process(
                list(spec.argv),
                env=self.screen.env(**spec.env),
                cwd=spec.cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )

    async def stop(self) -> None:
        if self.app is not None:
            await end(self.app)
            self.app = None

    async def ended(self) -> int:
        assert self.app is not None
        return await self.app.wait()

    async def state(self, wanted: LoginState, *, timeout: float = 20) -> Reading:
        """Wait until the probe reads `wanted`."""
        last: list[Reading] = []

        async def read() -> Reading | None:
            last[:] = [await self.adapter.probe(Eyes(self.backend))]
            return last[0] if last[0].state is wanted else None

        reading = await poll(read, timeout)
        assert reading is not None, f"{wanted} was not read; the last was {last}"
        return reading

    async def view(self) -> View:
        return await look(Eyes(self.backend))

    async def until(self, seen: Callable[[View], object]) -> View:
        """Wait until `seen` is true of the app's windows."""

        async def check() -> View | None:
            view = await self.view()
            return view if seen(view) else None

        view = await poll(check, 10)
        assert view is not None, f"not seen; the last was {await self.view()}"
        return view

    async def fault(self, name: str, **options: Any) -> None:
        await trio.to_thread.run_sync(partial(faults.switch, self.state_dir, name, **options))

    async def phone(self, move: str, **options: Any) -> Mapping[str, Any]:
        return await trio.to_thread.run_sync(partial(phone.play, self.state_dir, move, **options))

    async def flow(self, kind: str, control: AppControl | None = None) -> Mapping[str, Json]:
        """Carry out a kind that has no params and no commit point."""

        async def save(name: str, picture: Image.Image) -> str:
            return name

        context: FlowContext[Any] = FlowContext(
            "a1", 1, CATALOGUE[kind].params(), self.hands, Commit(), save,
            control=control or NoControl(),
        )  # fmt: skip
        return await self.adapter.flows[kind].run(context)

    async def act(
        self, kind: str, commit: Commit | None = None, *, owner: str | None = None, **params: Any
    ) -> Mapping[str, Json]:
        """Carry out a kind with these params."""
        context: FlowContext[Any] = FlowContext(
            "a1", 1, CATALOGUE[kind].params.model_validate(params), self.hands,
            commit or Commit(), self._save, owner=owner, open_file=self.files.open,
        )  # fmt: skip
        await self.files.prepare()
        return await self.adapter.flows[kind].run(context)

    async def look_for(self, kind: str, commit: Commit, *, app_ended: bool, **params: Any) -> Found:
        """What the verifier of a kind concludes behind a commit point."""
        assert commit.mark is not None
        context: VerifyContext[Any] = VerifyContext(
            "a1", CATALOGUE[kind].params.model_validate(params), commit.mark, Eyes(self.backend),
            app_ended, self._load,
        )  # fmt: skip
        return (await self.adapter.flows[kind].verify(context)).found

    async def arrive(self, what: str, contact: str, **options: Any) -> Mapping[str, Any]:
        return await trio.to_thread.run_sync(
            partial(arrivals.let_arrive, self.state_dir, what, contact, **options)
        )

    async def _save(self, name: str, picture: Image.Image) -> str:
        self.pictures[name] = picture
        return name

    async def _load(self, name: str) -> Image.Image | None:
        return self.pictures.get(name)

    async def send(
        self, to: str, text: str, commit: Commit | None = None, *, owner: str | None = None
    ) -> Mapping[str, Json]:
        params = SendText(to=to, text=text)
        context = FlowContext(
            "a1", 1, params, self.hands, commit or Commit(), self._save, owner=owner
        )
        return await self.adapter.flows["send_text"].run(context)

    async def verify(self, to: str, text: str, commit: Commit, *, app_ended: bool) -> Verdict:
        assert commit.mark is not None
        params = SendText(to=to, text=text)
        context = VerifyContext(
            "a1", params, commit.mark, Eyes(self.backend), app_ended, self._load
        )
        return await self.adapter.flows["send_text"].verify(context)

    def journal(self) -> list[dict[str, Any]]:
        return list(journal.entries(self.state_dir))

    def sent(self) -> list[tuple[str, str]]:
        return [(e["contact"], e["text"]) for e in self.journal() if e["effect"] == "message_sent"]


@asynccontextmanager
async def demo_desktop(folder: Path, **env: str) -> AsyncIterator[Demo]:
    """A display with a window manager and a backend; the app is not started yet."""
    async with (
        desktop(folder / "home") as screen,
        open_xdotool(screen.display, state_id=str(folder)) as backend,
    ):
        demo = Demo(screen, backend, folder / "state", env)
        try:
            yield demo
        finally:
            await demo.stop()


@asynccontextmanager
async def signed_in(folder: Path, **env: str) -> AsyncIterator[Demo]:
    """The app, started and signed in."""
    async with demo_desktop(folder, **env) as demo:
        await demo.launch()
        await demo.state(LoginState.LOGGED_IN)
        yield demo
