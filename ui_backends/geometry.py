"""From a window's coordinates to the screen's; blocking, for `XConnection.call`."""

from __future__ import annotations

from Xlib.display import Display

from ui_backends import windows
from ui_backends.base import FocusLost, OutOfBounds, Region, Window, WindowId, WindowNotFound


def read_now(display: Display, window: WindowId) -> Window:
    """One window, read fresh. Raises WindowNotFound."""
    return windows.read_window(display, window, windows.managed(display))


def bounds_of(display: Display, window: WindowId | None) -> Region:
    """The client area of a viewable window, or the screen."""
    if window is None:
        return Region(0, 0, *windows.screen_size(display))
    facts = read_now(display, window)
    if not facts.viewable:
        raise WindowNotFound(f"window {window:#x} is hidden")
    return facts.region


def point_on_screen(
    display: Display, point: tuple[int, int], window: WindowId | None
) -> tuple[int, int]:
    """A point of a window (of the screen without one) in screen pixels.

    Raises OutOfBounds, and FocusLost when another window covers the point: a click would hit that.
    """
    x, y = point
    bounds = bounds_of(display, window)
    if not (0 <= x < bounds.width and 0 <= y < bounds.height):
        raise OutOfBounds(f"{x},{y} is outside of {bounds.width}x{bounds.height}")
    width, height = windows.screen_size(display)
    at = (bounds.x + x, bounds.y + y)
    if not (0 <= at[0] < width and 0 <= at[1] < height):
        raise OutOfBounds(f"{x},{y} of the window lies off the screen")
    if window is not None and windows.window_at(display, *at) != windows.top_level(display, window):
        raise FocusLost(f"another window covers {x},{y} of window {window:#x}")
    return at


def area_on_screen(display: Display, window: WindowId | None, region: Region | None) -> Region:
    """What to take a picture of, in screen pixels. OutOfBounds when part of it is not there."""
    bounds = bounds_of(display, window)
    part = region or Region(0, 0, bounds.width, bounds.height)
    inside = (
        part.x >= 0
        and part.y >= 0
        and part.width > 0
        and part.height > 0
        and part.x + part.width <= bounds.width
        and part.y + part.height <= bounds.height
    )
    if not inside:
        raise OutOfBounds(f"{part} is outside of {bounds.width}x{bounds.height}")
    area = Region(bounds.x + part.x, bounds.y + part.y, part.width, part.height)
    width, height = windows.screen_size(display)
    if area.x < 0 or area.y < 0 or area.x + area.width > width or area.y + area.height > height:
        raise OutOfBounds(f"{part} of the window lies partly off the screen")
    return area
