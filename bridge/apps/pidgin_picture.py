"""Finds the entry in a picture of a conversation window and compares drafts. Pure functions.

The entry is the box of one colour at the bottom of the window; its text keeps a margin of a
few pixels from the left edge, so that the box's leftmost column shows the bare background
whatever is written, and the caret of an empty entry stands right beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from ui_backends.base import Region

Pixels = npt.NDArray[np.uint8]

LOWEST = 48
"""Pixels that the entry may end above the window's bottom: a margin and perhaps a scroll bar."""
LEFTMOST = 24
"""The same, between the window's left edge and the entry's."""
BEVEL = 3
"""Pixels at the window's edge that a theme may draw in other colours than its background."""
SHORTEST = 18
"""Height in pixels of the lowest box that counts as an entry: one line."""
CARET = 3
"""Width in pixels, from the box's left edge, in which the caret of an empty entry lies."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry as seen: where it is in its window, and what it shows."""

    region: Region
    pixels: Pixels

    @property
    def empty(self) -> bool:
        """Nothing but the background and perhaps a caret in its place."""
        return bool((self.pixels[:, CARET:] == self.pixels[0, 0]).all())

    @property
    def image(self) -> Image.Image:
        """The box as a picture."""
        return Image.fromarray(self.pixels)

    @property
    def middle(self) -> tuple[int, int]:
        """A point inside, relative to the window."""
        r = self.region
        return r.x + r.width // 2, r.y + r.height // 2

    def shows(self, draft: Image.Image) -> bool:
        """Whether it looks exactly like `draft`, a kept picture of it."""
        other: Pixels = np.asarray(draft.convert("RGB"))
        return bool(np.array_equal(self.pixels, other))


def find_entry(window: Image.Image) -> Entry | None:
    """The entry in a picture of a conversation window; None when there is none to be seen."""
    pixels: Pixels = np.asarray(window.convert("RGB"))
    height, width = pixels.shape[:2]
    if height <= LOWEST or width < 2 * LEFTMOST:
        return None
    edge = pixels[height - BEVEL, BEVEL]
    for x in range(BEVEL, LEFTMOST):
        span = _run(pixels[:, x], edge)
        if span is None:
            continue
        top, bottom = span
        if (pixels[top:bottom, x + 1] != pixels[top, x]).any():
            continue  # a line of the frame
        right = x + _width(pixels[top:bottom, x:])
        if right - x > width // 2:
            box = pixels[top:bottom, x:right]
            return Entry(Region(x, top, right - x, bottom - top), box)
    return None


def _run(column: Pixels, edge: Any) -> tuple[int, int] | None:
    """The lowest long stretch of one colour, not the window's own, that ends near the bottom."""
    for bottom in range(len(column), len(column) - LOWEST, -1):
        colour = column[bottom - 1]
        if (colour == edge).all():
            continue
        other = np.flatnonzero((column[:bottom] != colour).any(axis=1))
        top = int(other[-1]) + 1 if len(other) else 0
        if bottom - top >= SHORTEST:
            return top, bottom
    return None


def _width(pixels: Pixels) -> int:
    """How far the box reaches: as far as its clearest rows, such as those between two lines.

    The very clearest are left out, for they may be lines of the frame.
    """
    other = (pixels != pixels[0, 0]).any(axis=2)
    ends = np.where(other.any(axis=1), other.argmax(axis=1), pixels.shape[1])
    return int(np.sort(ends)[-4])
