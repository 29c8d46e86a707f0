"""The signs at the foot of the sign-in window, one for each of its screens.

They are drawn without a font, so every machine draws the same pixels, and whoever reads the
screen can compare with the very picture that the app draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import hypot

from bridge.demoapp import theme
from bridge.demoapp.shapes import mixed, rgb

SIZE = 40
"""Width and height of a sign, in pixels."""

_GRAIN = 4
"""Samples per pixel and direction, for smooth edges."""

_Ink = Callable[[float, float], bool]
"""Whether a point, counted from the middle, is drawn."""


def _scan(x: float, y: float) -> bool:
    """Four corners, as of a viewfinder."""
    far, near = max(abs(x), abs(y)), min(abs(x), abs(y))
    return 12 <= far <= 16 and near >= 7


def _renew(x: float, y: float) -> bool:
    """An arrow that goes round."""
    ring = 9 <= hypot(x, y) <= 13 and not (x > 0 and -9 < y < 2)
    return ring or (4 <= x <= 18 and 2 >= y >= -7 + abs(x - 11))


def _phone(x: float, y: float) -> bool:
    """A telephone."""
    outside = abs(x) <= 10 and abs(y) <= 17
    glass = abs(x) <= 7 and -14 <= y <= 9
    return outside and not glass and hypot(x, y - 13) > 2


def _dots(x: float, y: float) -> bool:
    """Three dots: wait."""
    return any(hypot(x - middle, y) <= 4 for middle in (-12, 0, 12))


_DRAWINGS: Mapping[str, _Ink] = {
    "qr": _scan,
    "expired": _renew,
    "confirm": _phone,
    "starting": _dots,
}

MARKS = tuple(_DRAWINGS)
"""The names of the screens."""


def _share(ink: _Ink, column: int, row: int) -> float:
    """How much of a pixel is drawn, 0 to 1."""
    steps = [(step + 0.5) / _GRAIN for step in range(_GRAIN)]
    hits = sum(ink(column + i - SIZE / 2, row + j - SIZE / 2) for i in steps for j in steps)
    return hits / _GRAIN**2


@lru_cache
def pixels(mark: str) -> bytes:
    """A sign as RGB bytes, `SIZE` by `SIZE`."""
    ink, front, back = _DRAWINGS[mark], rgb(theme.ACCENT), rgb(theme.PAPER)
    return b"".join(
        mixed(front, back, _share(ink, column, row))
        for row in range(SIZE)
        for column in range(SIZE)
    )
