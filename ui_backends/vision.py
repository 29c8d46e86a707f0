"""Looking at pictures: pure functions on Pillow images.

A question that a picture cannot answer is answered by "unknown", never by a guess: a blank
screen shows no sign-in window, and that does not mean that nobody is signed in.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from PIL import Image

from ui_backends.base import Region

TOLERANCE = 12
"""Difference of a colour channel (0 to 255) up to which two pixels count as equal."""

CARET = (4, 13)
"""Greatest width and least height in pixels of a bar that is taken for a caret."""

BLANK_SPREAD = 8
"""Difference between the darkest and the brightest pixel up to which a picture is blank."""


_Pixels = np.ndarray[Any, np.dtype[np.uint8]]
_Flags = np.ndarray[Any, np.dtype[np.bool_]]


class Answer(enum.Enum):
    """What a picture says about a template."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Template:
    """A picture to look for. `scale` and `theme` name the look of the app it was cut from."""

    name: str
    picture: Image.Image
    scale: float = 1.0
    theme: str = "light"


@dataclass(frozen=True, slots=True)
class Match:
    """The best place of a template: its score (-1 to 1) and where it lies in the picture."""

    name: str
    score: float
    region: Region


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which template the picture shows. `matches` holds the best place of each, best first."""

    answer: Answer
    matches: tuple[Match, ...]

    @property
    def best(self) -> Match | None:
        """The template with the highest score, None when nothing could be compared."""
        return self.matches[0] if self.matches else None


def _pixels(picture: Image.Image, mode: str = "RGB") -> _Pixels:
    return np.asarray(picture if picture.mode == mode else picture.convert(mode))


def difference(
    before: Image.Image, after: Image.Image, tolerance: int = TOLERANCE
) -> Region | None:
    """The smallest rectangle that holds every changed pixel; None when there is none.

    Pictures of different sizes differ everywhere.
    """
    if before.size != after.size:
        return Region(0, 0, *after.size)
    apart = cv2.absdiff(_pixels(before), _pixels(after)).max(axis=2) > tolerance
    rows, columns = np.flatnonzero(apart.any(axis=1)), np.flatnonzero(apart.any(axis=0))
    if not rows.size:
        return None
    x, y = int(columns[0]), int(rows[0])
    return Region(x, y, int(columns[-1]) - x + 1, int(rows[-1]) - y + 1)


def same(before: Image.Image, after: Image.Image, tolerance: int = TOLERANCE) -> bool:
    """Whether no pixel differs by more than `tolerance`."""
    return difference(before, after, tolerance) is None


def changed(
    before: Image.Image,
    after: Image.Image,
    *,
    tolerance: int = TOLERANCE,
    caret: tuple[int, int] = CARET,
) -> bool:
    """Whether more changed than a caret that came, went, blinked or moved.

    A caret is an upright bar at most `caret[0]` pixels wide and at least `caret[1]` high; one
    that moved leaves two of the same size. It covers what is below it, so in one of the pictures
    it is of one colour. A narrow letter is lower, or makes the place of a caret that moved wider
    and uneven; a lone "|" is the one character that can pass for a caret.
    """
    if before.size != after.size:
        return True
    pictures = _pixels(before), _pixels(after)
    apart = cv2.absdiff(*pictures).max(axis=2) > tolerance
    bars = []
    for start, end in _runs(apart.any(axis=0)):
        rows = np.flatnonzero(apart[:, start:end].any(axis=1))
        top, bottom = int(rows[0]), int(rows[-1]) + 1
        bars.append((end - start, bottom - top))
        boxes = [pixels[top:bottom, start:end] for pixels in pictures]
        if not _fits(bars[-1], caret) or not any(_plain(box, tolerance) for box in boxes):
            return True
    return len(bars) > 2 or len(set(bars)) > 1


def _fits(bar: tuple[int, int], caret: tuple[int, int]) -> bool:
    return bar[0] <= caret[0] and bar[1] >= caret[1]


def _plain(box: _Pixels, tolerance: int) -> bool:
    """Whether a box is of one colour: where the caret is, whatever letter lies below it."""
    flat = box.reshape(-1, box.shape[-1])
    return bool((flat.max(axis=0).astype(int) - flat.min(axis=0) <= tolerance).all())


def _runs(flags: _Flags) -> list[tuple[int, int]]:
    """Start and end (exclusive) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return [(int(start), int(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def blank(picture: Image.Image, spread: int = BLANK_SPREAD) -> bool:
    """Whether the picture is of one colour, as a screen that shows nothing is."""
    low, high = zip(*_bands(picture), strict=True)
    return bool(max(h - lo for lo, h in zip(low, high, strict=True)) <= spread)


def _bands(picture: Image.Image) -> Sequence[tuple[int, int]]:
    pixels = _pixels(picture)
    flat = pixels.reshape(-1, pixels.shape[-1])
    return [(int(lo), int(hi)) for lo, hi in zip(flat.min(axis=0), flat.max(axis=0), strict=True)]


def around(region: Region, margin: int, size: tuple[int, int]) -> Region:
    """`region` widened by `margin` pixels on each side, kept inside a picture of `size`."""
    x, y = max(0, region.x - margin), max(0, region.y - margin)
    right = min(size[0], region.x + region.width + margin)
    bottom = min(size[1], region.y + region.height + margin)
    return Region(x, y, max(0, right - x), max(0, bottom - y))


def cut(picture: Image.Image, region: Region) -> Image.Image:
    """The part of a picture."""
    return picture.crop((region.x, region.y, region.x + region.width, region.y + region.height))


def match(picture: Image.Image, template: Template, region: Region | None = None) -> Match | None:
    """The best place of one template, in colour; None when it does not fit into the picture.

    Only `region` is looked at when it is given; the place is told in the whole picture's pixels.
    """
    where = region or Region(0, 0, *picture.size)
    stage = _pixels(cut(picture, where) if region else picture)
    sought = _pixels(template.picture)
    if sought.shape[0] > stage.shape[0] or sought.shape[1] > stage.shape[1]:
        return None
    score, (x, y) = _best(stage, sought)
    found = Region(where.x + x, where.y + y, sought.shape[1], sought.shape[0])
    return Match(template.name, score, found)


def _best(stage: _Pixels, sought: _Pixels) -> tuple[float, tuple[int, int]]:
    """The highest score and its corner.

    The usual correlation is undefined for a template or a place of one colour, and then says 1
    or 0 as it likes; those are compared by their difference instead.
    """
    if int(sought.max()) == int(sought.min()):
        distance = cv2.matchTemplate(stage, sought, cv2.TM_SQDIFF)
        lowest, _, corner, _ = cv2.minMaxLoc(distance)
        return 1.0 - (max(0.0, lowest) / sought.size) ** 0.5 / 255, (corner[0], corner[1])
    scores = cv2.matchTemplate(stage, sought, cv2.TM_CCOEFF_NORMED)
    scores = np.where(np.isfinite(scores) & (scores <= 1.001), scores, -1.0)
    row, column = np.unravel_index(int(scores.argmax()), scores.shape)
    return min(1.0, float(scores[row, column])), (int(column), int(row))


def find(
    picture: Image.Image,
    templates: Sequence[Template],
    *,
    region: Region | None = None,
    yes: float = 0.95,
    no: float = 0.8,
    margin: float = 0.03,
) -> Verdict:
    """Which of the templates the picture shows.

    YES: the best reaches `yes` and is ahead of the next other name by `margin`. NO: none reaches
    `no`, and the picture shows something. Everything else is UNKNOWN: a blank picture, a score
    in between, two names that look alike, or no template that fits.
    """
    found = [m for m in (match(picture, t, region) for t in templates) if m is not None]
    matches = tuple(sorted(found, key=lambda m: -m.score))
    if not matches or blank(cut(picture, region) if region else picture):
        return Verdict(Answer.UNKNOWN, matches)
    best = matches[0]
    rival = max((m.score for m in matches if m.name != best.name), default=-1.0)
    if best.score >= yes and best.score - rival >= margin:
        return Verdict(Answer.YES, matches)
    return Verdict(Answer.NO if best.score < no else Answer.UNKNOWN, matches)


class TemplateSet:
    """Templates of the same names for several looks of an app (scale and theme)."""

    def __init__(self, templates: Sequence[Template]) -> None:
        self._by_look: dict[tuple[float, str], list[Template]] = {}
        for template in templates:
            self._by_look.setdefault((template.scale, template.theme), []).append(template)

    @property
    def looks(self) -> Mapping[tuple[float, str], Sequence[Template]]:
        """The templates by (scale, theme)."""
        return self._by_look

    def look_of(
        self, picture: Image.Image, *, region: Region | None = None, yes: float = 0.95
    ) -> tuple[float, str] | None:
        """The look whose best template scores highest, if that reaches `yes`."""
        scored = []
        for look, templates in self._by_look.items():
            best = find(picture, templates, region=region).best
            scored.append((best.score if best else -1.0, look))
        top = max(scored, default=None)
        return top[1] if top is not None and top[0] >= yes else None

    def find(
        self,
        picture: Image.Image,
        *,
        region: Region | None = None,
        look: tuple[float, str] | None = None,
    ) -> Verdict:
        """As `find`, with the templates of one look, or with all of them."""
        if look is not None:
            return find(picture, self._by_look.get(look, []), region=region)
        every = [t for templates in self._by_look.values() for t in templates]
        return find(picture, every, region=region)
