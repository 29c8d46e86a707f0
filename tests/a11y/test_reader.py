"""The accessibility reader on real programs: a Qt window, and Pidgin."""

from __future__ import annotations

import signal

import pytest
import trio

from bridge.hands import Eyes
from bridge.polling import poll
from tests.support.a11y import room
from tests.support.xmpp import xmpp_world
from tests.support.xserver import started
from ui_backends.a11y import A11yUnavailable, AppSilent, ElementGone, Limits, open_a11y
from ui_backends.fake import FakeBackend


async def say(process, line: str) -> None:
    await process.stdin.send_all(line.encode() + b"\n")


async def test_what_a_qt_window_shows(tmp_path):
    with trio.fail_after(120):
        async with room(tmp_path) as here, here.qt() as qt:
            history = await here.one(qt, "text", "history")
            assert history.text == "first line\n你好 🎉"
            assert history.showing
            entry = await here.one(qt, "text", "entry")
            assert "editable" in entry.states
            assert entry.text == "draft"
            button = await here.one(qt, "push button", "Send")
            assert button.usable
            assert "Press" in button.actions
            tree = await here.reader.tree((await here.app(qt)).ref)
            assert tree.complete
            assert tree.count == len(list(tree.root.walk()))
            assert any(e.name == "Qt window 微信" for e in tree.root.children)


async def test_an_element_read_again_says_what_is_there_now(tmp_path):
    with trio.fail_after(120):
        async with room(tmp_path) as here, here.qt() as qt:
            history = await here.one(qt, "text", "history")
            button = await here.one(qt, "push button", "Send")
            await say(qt, "add 再见")

            async def added() -> bool | None:
                return (await here.reader.text(history.ref)).endswith("再见") or None

            assert await poll(added, 30)
            assert await here.reader.text(history.ref, limit=2) == "再见"
            await say(qt, "disable")

            async def disabled() -> bool | None:
                return (not (await here.reader.element(button.ref)).usable) or None

            assert await poll(disabled, 30)


async def test_where_an_element_is(tmp_path):
    with trio.fail_after(120):
        async with room(tmp_path) as here, here.qt() as qt:
            history = await here.one(qt, "text", "history")
            button = await here.one(qt, "push button", "Send")

            async def laid_out() -> bool | None:
                top, low = [await here.reader.region(e.ref) for e in (history, button)]
                assert top.height > low.height
                return top.y + top.height <= low.y or None

            assert await poll(laid_out, 30)


async def test_limits_cut_a_long_list_short_and_keep_its_end(tmp_path):
    with trio.fail_after(120):
        async with room(tmp_path) as here, here.qt() as qt:
            await say(qt, "many 300")
            root = (await here.app(qt)).ref

            async def items() -> list[str] | None:
                tree = await here.reader.tree(root, Limits(children=10))
                names = [e.name for e in tree.root.find("list item")]
                return names if names and not tree.complete else None

            assert await poll(items, 30) == [f"name {n}" for n in range(290, 300)]
            few = await here.reader.tree(root, Limits(elements=3))
            assert (few.count, few.complete) == (3, False)
            flat = await here.reader.tree(root, Limits(depth=0))
            assert (flat.root.children, flat.complete) == ((), False)


async def test_a_stopped_program_is_told_and_holds_up_nobody_else(tmp_path):
    with trio.fail_after(180):
        async with room(tmp_path, call=2.0) as here, here.qt() as one, here.qt() as other:
            history = await here.one(one, "text", "history")
            await here.app(other)
            one.send_signal(signal.SIGSTOP)
            try:
                with pytest.raises(AppSilent, match="no answer"):
                    await here.reader.text(history.ref)
                assert (await here.one(other, "text", "entry")).text == "draft"
                assert {app.pid for app in await here.reader.apps()} == {other.pid}
            finally:
                one.send_signal(signal.SIGCONT)
            assert await here.reader.text(history.ref) == "first line\n你好 🎉"


async def test_a_program_that_ended_and_one_that_came_back(tmp_path):
    with trio.fail_after(120):
        async with room(tmp_path) as here:
            async with here.qt() as qt:
                history = await here.one(qt, "text", "history")
            with pytest.raises(ElementGone):
                await here.reader.text(history.ref)
            assert await here.reader.app(qt.pid) is None
            async with here.qt() as again:
                assert (await here.one(again, "text", "history")).text


async def test_no_bus_is_told_with_the_reason(tmp_path):
    with trio.fail_after(60):
        async with open_a11y(f"unix:path={tmp_path}/nobody") as reader:
            with pytest.raises(A11yUnavailable, match="session bus"):
                await reader.apps()


async def test_a_bus_that_was_restarted_is_found_again(tmp_path):
    with trio.fail_after(120):
        async with room(tmp_path) as here:
            async with here.qt() as qt:
                await here.app(qt)
            await here.bus.stop()
            with pytest.raises(A11yUnavailable):
                await here.reader.apps()
            here.bus = await type(here.bus).open(tmp_path, here.screen.display, here.env())
            try:
                async with here.qt() as qt:
                    await here.app(qt)
            finally:
                await here.bus.stop()


async def test_pidgins_buddy_list(tmp_path):
    with trio.fail_after(180):
        async with xmpp_world(tmp_path) as world, room(tmp_path / "bus") as here:
            argv = ["pidgin", "-c", str(world.state_dir / "pidgin")]
            async with started(argv, env=here.env(LANGUAGE="en")) as pidgin:
                eyes = Eyes(FakeBackend(), here.reader)

                async def frame() -> list[str] | None:
                    app = await eyes.a11y_app(pidgin.pid)
                    if app is None:
                        return None
                    tree = await eyes.a11y_tree(app.ref)
                    lists = tree.root.find("frame", "Buddy List")
                    return [e.name for e in lists[0].find("menu")] if lists else None

                menus = await poll(frame, 60)
                assert menus
                assert {"Buddies", "Accounts", "Tools", "Help"} <= set(menus)
