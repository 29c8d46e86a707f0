"""The fake keeps the promises of a backend, under virtual time."""

from __future__ import annotations

import pytest
import trio
from PIL import Image
from trio.testing import MockClock

from tests.support.bounds import bounded
from ui_backends import vision
from ui_backends.base import (
    CommandFailed,
    FocusLost,
    OutOfBounds,
    PasteNotRead,
    Region,
    StepTimeout,
    WindowNotFound,
)
from ui_backends.fake import Command, FakeBackend


@bounded(60)
async def test_text_goes_to_the_window_with_the_focus_only() -> None:
    fake = FakeBackend()
    one, two = fake.add_window("one"), fake.add_window("two")
    await fake.paste_text(two.facts.id, "for two")
    with pytest.raises(FocusLost):
        await fake.paste_text(one.facts.id, "for one")
    with pytest.raises(FocusLost):
        await fake.chord("Return", window=one.facts.id)
    await fake.activate(one.facts.id)
    await fake.chord("Return", window=one.facts.id)
    assert (one.pasted, one.chords) == ([], [("Return",)])
    assert (two.pasted, two.chords) == (["for two"], [("ctrl", "v")])


@bounded(60)
async def test_windows_twins_hidden_and_gone() -> None:
    fake = FakeBackend()
    one, two = fake.add_window("twin"), fake.add_window("twin")
    fake.add_window("menu", managed=False, viewable=False)
    popup = fake.add_window("popup", managed=False)
    assert [w.id for w in await fake.windows()] == [one.facts.id, two.facts.id, popup.facts.id]
    assert await fake.active_window() == popup.facts.id
    fake.remove_window(popup.facts.id)
    assert await fake.active_window() is None
    with pytest.raises(WindowNotFound):
        await fake.window(popup.facts.id)
    with pytest.raises(WindowNotFound):
        await fake.activate(popup.facts.id)
    fake.set_title(one.facts.id, "new")
    assert (await fake.window(one.facts.id)).title == "new"


@pytest.mark.parametrize("point", [(-1, 0), (400, 0), (0, 300)])
@bounded(60)
async def test_a_point_outside_presses_nothing(point: tuple[int, int]) -> None:
    fake = FakeBackend()
    window = fake.add_window("w")
    with pytest.raises(OutOfBounds):
        await fake.click(*point, window.facts.id)
    await fake.click(399, 299, window.facts.id, button=3, count=2)
    assert window.clicks == [(399, 299, 3)] * 2


@bounded(60)
async def test_a_key_that_does_not_exist() -> None:
    fake = FakeBackend()
    window = fake.add_window("w")
    with pytest.raises(CommandFailed) as caught:
        await fake.chord("Retrun")
    assert not caught.value.executed
    assert window.chords == []


@bounded(60)
async def test_an_app_that_does_not_ask() -> None:
    fake = FakeBackend()
    window = fake.add_window("w")
    window.reads_paste = False
    with pytest.raises(PasteNotRead):
        await fake.paste_text(window.facts.id, "text")
    assert window.pasted == []


@bounded(60)
async def test_hooks_wait_raise_and_change_the_world(autojump_clock: MockClock) -> None:
    fake = FakeBackend()
    window = fake.add_window("w")

    async def slow(_command: Command) -> None:
        await trio.sleep(4)

    async def steal_focus(_command: Command) -> None:
        fake.add_window("popup")

    async def time_out(_command: Command) -> None:
        raise StepTimeout("late")

    fake.before("click", slow)
    begun = trio.current_time()
    await fake.click(1, 1, window.facts.id)
    assert trio.current_time() - begun == 4
    fake.before("chord", steal_focus)
    with pytest.raises(FocusLost):
        await fake.chord("Return", window=window.facts.id)
    fake.focus = window.facts.id
    fake.down = ["Return"]
    fake.after("paste_text", time_out)
    with pytest.raises(StepTimeout):
        await fake.paste_text(window.facts.id, "text")
    assert window.pasted == ["text"]
    assert fake.down == [], "a failed command releases every key"
    assert [c.name for c in fake.effects] == ["click", "chord", "paste_text"]


@bounded(60)
async def test_pictures() -> None:
    fake = FakeBackend()
    window = fake.add_window("w", region=Region(10, 20, 50, 40))
    window.picture = Image.new("RGB", (50, 40), (255, 0, 0))
    screen = await fake.capture()
    assert screen.size == (1280, 800)
    assert vision.same(await fake.capture(window.facts.id), window.picture)
    assert (await fake.capture(window.facts.id, Region(0, 0, 5, 6))).size == (5, 6)
    assert vision.blank(await fake.capture(None, Region(500, 500, 20, 20)))
    with pytest.raises(OutOfBounds):
        await fake.capture(window.facts.id, Region(0, 0, 51, 1))
