"""Text arrives exactly, or the command fails and presses nothing."""

from __future__ import annotations

import os
import signal

import pytest
import trio

from tests.support.bounds import bounded, until
from tests.support.textwindow import TextWindow, announce_pings, is_gone
from tests.support.xserver import XServer
from tests.x11.conftest import World
from ui_backends.base import Backend, FocusLost, PasteNotRead, Ping, WindowNotFound

TEXTS = {
    "ascii": "The quick brown fox: 0123456789 !\"#$%&'()*+,./;<=>?@[\\]^_`{|}~",
    "cjk": "你好，世界。日本語の文字 한국어",
    "emoji": "🎉👩‍👩‍👧‍👦🇨🇳 ok ☺️",
    "newlines": "first\nsecond\n\nfourth\n",
    "tabs": "a\tb\t\tc",
    "leading dash": "--help -x",
    "long": "".join(f"{n:05d} 甲乙🎉\n" for n in range(1000))[:10_000],
    "in pieces": "x你" * 100_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
@bounded(60)
async def test_text_is_exact(backend: Backend, window: TextWindow, text: str) -> None:
    await backend.paste_text(window.id, text)
    await window.shows(text)


@bounded(60)
async def test_an_empty_text_presses_and_changes_nothing(
    backend: Backend, window: TextWindow
) -> None:
    await backend.paste_text(window.id, "")
    await window.settle()
    assert window.text == ""


@bounded(60)
async def test_texts_and_keys_arrive_in_order(backend: Backend, window: TextWindow) -> None:
    expected = ""
    for n in range(10):
        await backend.paste_text(window.id, f"line {n} 好")
        expected += f"line {n} 好"
        await window.shows(expected)
        await backend.chord("Return", window=window.id)
        expected += "\n"
    await window.shows(expected)


@bounded(60)
async def test_two_tasks_pasting_at_once_get_their_own_text(
    backend: Backend, windows: World
) -> None:
    one = await windows.open("--geometry", "300x200+0+0", title="one")
    two = await windows.open("--geometry", "300x200+600+300", title="two")

    async def paste(target: TextWindow, word: str) -> None:
        for n in range(5):
            while True:  # the other task may take the focus in between, which must press nothing
                await backend.activate(target.id)
                try:
                    await backend.paste_text(target.id, f"{word}{n} ")
                except FocusLost:
                    continue
                break

    async with trio.open_nursery() as nursery:
        nursery.start_soon(paste, one, "one")
        nursery.start_soon(paste, two, "two")
    await one.shows("one0 one1 one2 one3 one4 ")
    await two.shows("two0 two1 two2 two3 two4 ")


async def focus_left(backend: Backend, window: TextWindow) -> bool:
    return await backend.active_window() not in (window.id, None)


@bounded(60)
async def test_a_popup_with_the_focus_gets_nothing(backend: Backend, window: TextWindow) -> None:
    await window.tell("popup")
    await until(lambda: focus_left(backend, window))
    with pytest.raises(FocusLost):
        await backend.paste_text(window.id, "secret")
    with pytest.raises(FocusLost):
        await backend.chord("Return", window=window.id)
    await window.settle()
    assert window.events("key") == []
    assert window.text == ""


@bounded(60)
async def test_a_window_that_is_gone_gets_nothing(
    server: XServer, backend: Backend, windows: World
) -> None:
    first = await windows.open(title="first")
    second = await windows.open(title="second")
    second.process.kill()
    await second.process.wait()
    await until(lambda: is_gone(backend, second.id))
    with pytest.raises((WindowNotFound, FocusLost)):
        await backend.paste_text(second.id, "text")
    await first.settle()
    assert first.events("key") == []


@bounded(60)
async def test_an_app_that_does_not_ask_is_told_and_the_clipboard_disowned(
    backend: Backend, windows: World
) -> None:
    stubborn = await windows.open("--stubborn")
    begun = trio.current_time()
    with pytest.raises(PasteNotRead):
        await backend.paste_text(stubborn.id, "never read")
    assert trio.current_time() - begun < 2
    await stubborn.settle()
    assert stubborn.text == ""
    assert await backend.clipboard() is None
    # it answers a ping, so it may be pasted into again
    with pytest.raises(PasteNotRead) as caught:
        await backend.paste_text(stubborn.id, "again")
    assert caught.value.executed


@bounded(60)
async def test_a_frozen_app_gets_no_second_text_and_no_late_one(
    backend: Backend, window: TextWindow, server: XServer
) -> None:
    os.kill(window.process.pid, signal.SIGSTOP)
    with pytest.raises(PasteNotRead):
        await backend.paste_text(window.id, "first")
    os.kill(window.process.pid, signal.SIGCONT)
    await window.seen("key", 2)
    await window.settle()
    # the chord was still in its queue; what it asked for was not there any more
    assert [e["key"] for e in window.events("key")] == ["Control_L", "v"]
    assert window.text == ""
    assert await backend.ping(window.id) is Ping.ALIVE
    await backend.paste_text(window.id, "second")
    await window.shows("second")


@bounded(60)
async def test_a_text_window_can_be_pasted_into_by_another_chord(
    backend: Backend, window: TextWindow
) -> None:
    await backend.paste_text(window.id, "by insert", chord=("shift", "Insert"))
    await window.shows("by insert")


@bounded(60)
async def test_nothing_more_is_pasted_until_the_app_answers(
    server: XServer, backend: Backend, windows: World
) -> None:
    window = await windows.open()
    await announce_pings(server, window.id)
    os.kill(window.process.pid, signal.SIGSTOP)
    with pytest.raises(PasteNotRead) as first:
        await backend.paste_text(window.id, "first")
    assert first.value.executed
    for _ in range(2):
        with pytest.raises(PasteNotRead) as next_one:
            await backend.paste_text(window.id, "second")
        assert not next_one.value.executed
    os.kill(window.process.pid, signal.SIGCONT)
    await backend.paste_text(window.id, "third")
    await window.shows("third")
    await window.settle()
    assert [e["key"] for e in window.events("key")] == ["Control_L", "v"] * 2


@bounded(60)
async def test_an_unread_paste_does_not_hold_up_another_app(
    server: XServer, backend: Backend, windows: World
) -> None:
    stopped = await windows.open(title="stopped")
    await announce_pings(server, stopped.id)
    os.kill(stopped.process.pid, signal.SIGSTOP)
    with pytest.raises(PasteNotRead):
        await backend.paste_text(stopped.id, "first")
    other = await windows.open(title="other")
    await backend.paste_text(other.id, "for the other")
    await other.shows("for the other")
    # the first app is still under suspicion
    with pytest.raises((PasteNotRead, FocusLost)) as caught:
        await backend.paste_text(stopped.id, "second")
    assert not caught.value.executed
    os.kill(stopped.process.pid, signal.SIGCONT)
