"""Moves, clicks, the wheel and drags land where they were aimed, or nowhere."""

from __future__ import annotations

import pytest

from tests.support.bounds import bounded
from tests.support.textwindow import TextWindow
from tests.support.xserver import XServer
from tests.x11.conftest import World
from ui_backends.base import Backend, FocusLost, OutOfBounds, WindowNotFound


@pytest.mark.parametrize("point", [(0, 0), (0, 1), (1, 0), (399, 299), (200, 150)])
@bounded(60)
async def test_a_click_lands_on_its_pixel(
    backend: Backend, window: TextWindow, point: tuple[int, int]
) -> None:
    await backend.click(*point, window.id)
    await window.seen("click")
    assert window.clicks == [(*point, 1)]


@bounded(60)
async def test_a_click_on_the_spot_where_the_pointer_already_is(
    backend: Backend, window: TextWindow
) -> None:
    for _ in range(3):
        await backend.click(5, 5, window.id)
    await window.seen("click", 3)
    assert window.clicks == [(5, 5, 1)] * 3


@bounded(60)
async def test_buttons_and_double_clicks(backend: Backend, window: TextWindow) -> None:
    await backend.click(10, 10, window.id, button=3)
    await backend.click(20, 20, window.id, count=2)
    await window.seen("click", 3)
    assert window.clicks == [(10, 10, 3), (20, 20, 1), (20, 20, 1)]


@bounded(60)
async def test_the_corners_of_the_screen(server: XServer, backend: Backend, windows: World) -> None:
    corner = await windows.open("--geometry", "1280x800+0+0")
    region = (await backend.window(corner.id)).region
    await backend.click(region.x, region.y)
    await corner.seen("click")
    assert corner.clicks == [(0, 0, 1)]
    await backend.click(1279, 799)
    with pytest.raises(OutOfBounds):
        await backend.click(1280, 799)


@pytest.mark.parametrize("point", [(-1, 0), (0, -1), (400, 0), (0, 300), (10_000, 10_000)])
@bounded(60)
async def test_a_point_outside_presses_nothing(
    backend: Backend, window: TextWindow, point: tuple[int, int]
) -> None:
    with pytest.raises(OutOfBounds) as caught:
        await backend.click(*point, window.id)
    assert not caught.value.executed
    await window.settle()
    assert window.clicks == []


@bounded(60)
async def test_a_point_of_a_window_that_lies_off_the_screen(
    server: XServer, backend: Backend, windows: World
) -> None:
    window = await windows.open("--geometry", "400x300+1100+80")
    region = (await backend.window(window.id)).region
    assert region.x + region.width > 1280, "the window manager moved it onto the screen"
    with pytest.raises(OutOfBounds):
        await backend.click(399, 0, window.id)


@bounded(60)
async def test_the_wheel(server: XServer, backend: Backend, window: TextWindow) -> None:
    await backend.scroll(50, 50, 2, window.id)
    await backend.scroll(50, 50, -1, window.id)
    await backend.scroll(50, 50, 0, window.id)
    await window.seen("click", 3)
    await window.settle()
    assert window.clicks == [(50, 50, 5), (50, 50, 5), (50, 50, 4)]


@bounded(60)
async def test_a_drag(server: XServer, backend: Backend, window: TextWindow) -> None:
    await backend.drag((10, 10), (200, 100), window.id)
    release = await window.seen("release")
    assert window.clicks == [(10, 10, 1)]
    assert (release["x"], release["y"]) == (200, 100)


@bounded(60)
async def test_a_move_clicks_nothing(backend: Backend, window: TextWindow) -> None:
    await backend.move(30, 30, window.id)
    await window.settle()
    assert window.clicks == []


@bounded(60)
async def test_a_hidden_window_cannot_be_clicked(backend: Backend, windows: World) -> None:
    hidden = await windows.open("--hidden")
    inner = hidden.events("ready")[0]["window"]
    with pytest.raises(WindowNotFound):
        await backend.click(5, 5, inner)
    with pytest.raises(WindowNotFound):
        await backend.click(5, 5, 0x7FFFFF)


@bounded(60)
async def test_a_point_that_another_window_covers_is_not_clicked(
    server: XServer, backend: Backend, windows: World
) -> None:
    lower = await windows.open("--geometry", "400x300+100+80", title="lower")
    upper = await windows.open("--geometry", "200x150+150+150", title="upper")
    low = (await backend.window(lower.id)).region
    high = (await backend.window(upper.id)).region
    covered = (high.x + 50 - low.x, high.y + 50 - low.y)
    with pytest.raises(FocusLost) as caught:
        await backend.click(*covered, lower.id)
    assert not caught.value.executed
    await backend.click(5, low.height - 5, lower.id)
    await lower.seen("click")
    await backend.click(*covered, lower.id)  # that click raised it
    await lower.seen("click", 2)
    assert lower.clicks == [(5, low.height - 5, 1), (*covered, 1)]
    assert upper.clicks == []
