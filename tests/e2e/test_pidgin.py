"""Pidgin itself, on a display of its own, against a real XMPP server; a peer sees what arrives."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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
from ui_backends.base import Window
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
class Frozen(Commit):
    """A commit whose app stops between the last look and the key."""

    press: Callable[[], Awaitable[None]] | None = None

    async def __call__(
        self,
        mark: Mapping[str, Json],
        *,
        recheck: Callable[[], Awaitable[None]],
        act: Callable[[], Awaitable[None]],
    ) -> None:
        assert self.press is not None
        press = self.press

        async def stopped() -> None:
            await press()
            await act()

        await super().__call__(mark, recheck=recheck, act=stopped)


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
        return Hands(self.backend, permit=Allowed(), on_step=self.steps.append, wall_ms=lambda: 0)

    async def launch(self) -> None:
        self.adapter.prepare()
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

    async def send(self, to: str, text: str, commit: Commit | None = None) -> Mapping[str, Json]:
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


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that another process does; the test's deadline bounds it."""
    while not await look():  # noqa: ASYNC110 another process, nothing to wait on
        await trio.sleep(0.02)


@asynccontextmanager
async def popup(one: Bench) -> AsyncIterator[None]:
    """A foreign window that has taken the focus."""
    before = await one.backend.active_window()
    argv = ["xterm", "-e", "cat"]
    process = await trio.lowlevel.open_process(
        argv,
        env=one.screen.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    async def taken() -> bool:
        return await one.backend.active_window() not in {before, None}

    try:
        await until(taken)
        yield
    finally:
        await end(process)


BODIES = (
    "plain ASCII",
    "你好，世界",
    "🎉👨‍👩‍👧 emoji",
    "two\nlines",
    "<b>&amp;</b> <a href='x'>\"q\"</a>",
    "  blanks  and\ttab ",
    "/quit is no command",
    "/me is told as a deed",
    "http://a.b/?x=1&y=2 :-)",
    "long " * 400,
)


async def test_fifty_messages_arrive_once_in_order_at_the_right_contact(tmp_path: Path) -> None:
    turns = ("Bob", "Bobby", BOB.jid, BOBBY.jid)
    sends = [(turns[n % 4], f"{BODIES[n % len(BODIES)]}\n#{n}") for n in range(50)]
    with trio.fail_after(120):
        async with online(tmp_path) as one:
            results = [await one.send(to, text) for to, text in sends]
            arrived = await one.world.peer.arrived(50)
    # Each account has a stream of its own, so order is a promise per contact.
    users = {"Bob": "bob", BOB.jid: "bob", "Bobby": "bobby", BOBBY.jid: "bobby"}
    for user in ("bob", "bobby"):
        expected = [text for to, text in sends if users[to] == user]
        assert [body for who, body in arrived if who == user] == expected
    assert len(arrived) == 50
    assert [r["to"] for r in results] == [f"{users[to]}@localhost" for to, _ in sends]
    assert len({r["message"] for r in results} | {r["to"] for r in results}) == 52


async def test_namesakes_are_told_apart_by_their_addresses(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            with pytest.raises(BridgeError) as refused:
                await one.send(TWINS[0].alias or "", "which?")
            assert refused.value.code == "AMBIGUOUS_CONTACT"
            candidates = refused.value.extra["candidates"]
            assert {c["id"] for c in candidates} == {t.jid for t in TWINS}
            for twin in (*TWINS, NAMELESS, *TWINS):
                await one.send(twin.jid, f"for {twin.user}")
            arrived = await one.world.peer.arrived(5)
    assert sorted(arrived) == sorted(
        (twin.user, f"for {twin.user}") for twin in (*TWINS, NAMELESS, *TWINS)
    )


async def test_unknown_contact_is_refused_and_nothing_is_pressed(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            one.steps.clear()
            for to in ("Bo", "bob", "nobody@localhost"):
                with pytest.raises(BridgeError) as refused:
                    await one.send(to, "hello")
                assert refused.value.code == "CONTACT_NOT_FOUND"
            assert one.steps == []
            await one.send("Bob", "the only one")
            assert await one.world.peer.arrived(1) == [("bob", "the only one")]


async def test_what_the_contact_says_is_not_taken_for_the_own_text(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            await one.send("Bob", "first")

            async def echo() -> None:
                await one.world.peer.say("bob", "same words")

                async def logged() -> bool:
                    logs = (one.adapter.folder / "logs").rglob("bob@localhost/*.txt")
                    return any("Bob: same words" in log.read_text("utf-8") for log in logs)

                await until(logged)
                await one.world.server.stop()
                await one.state(LoginState.OFFLINE)

            commit = Commit(before=echo)
            with pytest.raises(BridgeError) as failed:
                await one.send("Bob", "same words", commit)
            assert failed.value.code == "APP_NOT_READY"
            assert not commit.handed_over
            verdict = await one.verify("same words", commit, app_ended=False)
            assert verdict.found is not Found.DONE


async def test_popup_before_return_is_focus_lost_and_nothing_is_sent(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one, AsyncExitStack() as popups:

            async def steal() -> None:
                await popups.enter_async_context(popup(one))

            commit = Commit(before=steal)
            with pytest.raises(BridgeError) as failed:
                await one.send("Bob", "not this", commit)
            assert failed.value.code == "FOCUS_LOST"
            assert not commit.handed_over
            await popups.aclose()
            await one.adapter.clean_screen(one.hands)
            await one.send("Bob", "but this")
            assert await one.world.peer.arrived(1) == [("bob", "but this")]


@pytest.mark.parametrize("disturbed", ["paste_text", "chord"])
async def test_popup_during_a_step_is_focus_lost(tmp_path: Path, disturbed: str) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one, AsyncExitStack() as popups:
            await one.send("Bob", "opens the conversation")
            # The popup comes right before the command, whose own look at the focus must see it.
            real = getattr(one.backend, disturbed)

            async def beset(*args: Any, **options: Any) -> Any:
                if one.backend.__dict__.pop(disturbed, None):
                    await popups.enter_async_context(popup(one))
                return await real(*args, **options)

            setattr(one.backend, disturbed, beset)
            with pytest.raises(BridgeError) as failed:
                await one.send("Bob", "not this")
            assert failed.value.code == "FOCUS_LOST"
            await popups.aclose()
            await one.adapter.clean_screen(one.hands)
            await one.send("Bob", "but this")
            assert [body for _, body in await one.world.peer.arrived(2)] == [
                "opens the conversation",
                "but this",
            ]


async def test_states_of_a_lost_server_and_its_account(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            reading = await one.adapter.probe(Eyes(one.backend))
            assert (reading.state, reading.account) == (LoginState.LOGGED_IN, OWNER_JID)
            await one.world.server.stop()
            await one.state(LoginState.OFFLINE)
            with pytest.raises(BridgeError) as refused:
                await one.send("Bob", "hello")
            assert refused.value.code == "APP_NOT_READY"


async def test_no_server_at_the_start_is_starting(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with bench(tmp_path) as one:
            await one.state(LoginState.LOGGED_IN)
            await one.stop()
            await one.state(LoginState.UNKNOWN)
            await one.world.server.stop()
            await one.launch()
            await one.state(LoginState.STARTING)


@pytest.mark.parametrize(
    "seed", [{"enabled": False}, {"password": "wrong"}, {"password": None}], ids=str
)
async def test_account_that_needs_a_person_is_logged_out(
    tmp_path: Path, seed: dict[str, Any]
) -> None:
    with trio.fail_after(60):
        async with bench(tmp_path, **seed) as one:
            await one.state(LoginState.LOGGED_OUT)
            with pytest.raises(BridgeError) as refused:
                await one.send("Bob", "hello")
            assert refused.value.code == "NOT_LOGGED_IN"


async def test_draft_left_by_an_ended_connection_is_not_done(tmp_path: Path) -> None:
    """Return pressed while offline does nothing in Pidgin: the draft stays and proves it."""
    with trio.fail_after(60):
        async with online(tmp_path) as one:

            async def cut() -> None:
                await one.world.server.stop()
                await one.state(LoginState.OFFLINE)

            commit = Frozen(press=cut)
            with pytest.raises(BridgeError):
                await one.send("Bob", "never left", commit)
            assert commit.handed_over
            verdict = await one.verify("never left", commit, app_ended=False)
            assert verdict.found is Found.NOT_DONE
            assert one.world.peer.messages() == []


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_pidgin_killed_around_return_is_never_called_not_done(
    tmp_path: Path, moment: str
) -> None:
    with trio.fail_after(120):
        async with online(tmp_path) as one:
            proven: list[tuple[str, str]] = []
            for n in range(5):

                async def kill() -> None:
                    assert one.app is not None
                    one.app.kill()
                    await one.app.wait()

                text, commit = f"last words {n}", Commit(**{moment: kill})
                told_done = False
                with suppress(BridgeError):
                    told_done = bool(await one.send("Bob", text, commit))
                verdict = await one.verify(text, commit, app_ended=True)
                assert verdict.found is (Found.DONE if told_done else verdict.found)
                assert verdict.found is not Found.NOT_DONE
                if verdict.found is Found.DONE:
                    proven.append(("bob", text))
                await one.launch()
                await one.state(LoginState.LOGGED_IN)
                await one.adapter.clean_screen(one.hands)
            await one.send("Bob", "the last")
            arrived = await one.world.peer.arrived(len(proven) + 1)
            assert set(proven) <= set(arrived)
            assert len(arrived) == len(set(arrived))


async def test_hung_pidgin_is_unknown_until_it_has_dealt_with_return(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            assert one.app is not None
            app = one.app

            async def freeze() -> None:
                app.send_signal(signal.SIGSTOP)

            # Frozen between the last look and the key: Return waits in its queue.
            commit = Frozen(press=freeze)
            with pytest.raises(BridgeError):
                await one.send("Bob", "late", commit)
            verdict = await one.verify("late", commit, app_ended=False)
            assert verdict.found is Found.UNKNOWN
            app.send_signal(signal.SIGCONT)
            assert await one.world.peer.arrived(1) == [("bob", "late")]
            verdict = await one.verify("late", commit, app_ended=False)
            assert verdict.found is Found.DONE
            assert verdict.result["to"] == BOB.jid


async def test_clean_screen_leaves_the_buddy_list_alone(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with online(tmp_path) as one:
            await one.send("Bob", "opens a window")
            session = await one.adapter._view.session(one.hands)
            await one.backend.activate(session.buddy_list.id)
            await one.backend.chord("ctrl", "m")
            await one.hands.until("the dialog", lambda: _titled(one, "New Instant Message"))
            await one.adapter.clean_screen(one.hands)
            left = [w for w in await one.backend.windows() if w.pid == session.pid]
            assert [w.role for w in left] == ["buddy_list"]


async def _titled(one: Bench, title: str) -> Window | None:
    return next((w for w in await one.backend.windows() if w.title == title), None)
