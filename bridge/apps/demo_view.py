"""What the demo app's windows say: titles read as values, pictures as answers. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from bridge.demoapp import theme, titles
from bridge.demoapp.contacts import SEPARATOR
from bridge.model import Json
from ui_backends import vision
from ui_backends.base import Region, Window

_MAIN = re.compile(
    rf"{titles.APP} - (?P<account>[^ ]+)(?P<offline> \(offline\))?(?: - (?P<rest>.+))?"
)
_SEARCH = re.compile(r"search(?:: (?P<none>no hits)| (?P<at>\d+)/(?P<of>\d+): (?P<hit>.+))?")
_LABEL = re.compile(r"(?P<words>.+) \[(?P<id>[a-z0-9._-]+)\]")


@dataclass(frozen=True, slots=True)
class Named:
    """A contact as a title names it."""

    id: str
    name: str
    remark: str = ""

    def is_called(self, wanted: str) -> bool:
        """Whether this is exactly its id, remark or name."""
        return wanted in {self.id, self.name, self.remark} - {""}

    @property
    def label(self) -> str:
        """The words of the title."""
        words = f"{self.remark}{SEPARATOR}{self.name}" if self.remark else self.name
        return f"{words} [{self.id}]"

    def to_json(self) -> dict[str, Json]:
        """As a candidate in an AMBIGUOUS_CONTACT error."""
        return {"id": self.id, "name": self.name, "remark": self.remark}


@dataclass(frozen=True, slots=True)
class Hits:
    """An answered search: `position` counts from 1; 0 of 0 when nothing was found."""

    position: int
    total: int
    hit: Named | None


@dataclass(frozen=True, slots=True)
class Row:
    """How the search of a panel stands: `label` is the row at hand of `total` that were found."""

    position: int
    total: int
    label: str


def parse_rows(word: str, part: str) -> Row | None:
    """The part of a title that `demoapp.titles.rows_part` wrote; None before anything is found."""
    if part == f"{word}: no hits":
        return Row(0, 0, "")
    found = re.fullmatch(rf"{word} (\d+)/(\d+): (.+)", part)
    return None if found is None else Row(int(found[1]), int(found[2]), found[3])


@dataclass(frozen=True, slots=True)
class MainTitle:
    """The main window's title. While `searching`, the open chat is not told."""

    account: str
    offline: bool = False
    chat: Named | None = None
    searching: bool = False
    hits: Hits | None = None


def parse_label(text: str) -> Named | None:
    """`remark / name [id]` or `name [id]`."""
    found = _LABEL.fullmatch(text)
    if found is None:
        return None
    remark, separator, name = found["words"].partition(SEPARATOR)
    if not separator:
        return Named(found["id"], found["words"])
    return Named(found["id"], name, remark)


def parse_title(text: str) -> MainTitle | None:
    """The main window's title; None for any other."""
    found = _MAIN.fullmatch(text)
    if found is None or text == titles.SIGN_IN:
        return None
    account, offline, rest = found["account"], found["offline"] is not None, found["rest"]
    if rest is None:
        return MainTitle(account, offline)
    # a chat's title ends in its id in brackets, so no name can pass for a search
    search = _SEARCH.fullmatch(rest)
    if search is None:
        return MainTitle(account, offline, chat=parse_label(rest))
    return MainTitle(account, offline, searching=True, hits=_hits(search))


def _hits(search: re.Match[str]) -> Hits | None:
    if search["none"]:
        return Hits(0, 0, None)
    if search["hit"]:
        return Hits(int(search["at"]), int(search["of"]), parse_label(search["hit"]))
    return None


@dataclass(frozen=True, slots=True)
class View:
    """The app's windows of one moment. `title` is the main window's."""

    main: Window | None
    title: MainTitle | None
    sign_in: Window | None
    dialogs: tuple[Window, ...]
    menus: tuple[Window, ...]


def view_of(windows: Sequence[Window]) -> View:
    """Sort the app's windows; other programs' windows play no part."""
    own = [window for window in windows if window.wm_class[1] == titles.WM_CLASS]
    mains = [window for window in own if parse_title(window.title) and not window.dialog]
    main = max(mains, key=_rank, default=None)
    sign_ins = [window for window in own if window.title == titles.SIGN_IN]
    pids = {window.pid for window in own}
    menus = [w for w in windows if w.pid in pids and not w.managed and w.viewable and w not in own]
    return View(
        main=main,
        title=parse_title(main.title) if main else None,
        sign_in=max(sign_ins, key=_rank, default=None),
        dialogs=tuple(w for w in own if w.viewable and w not in (*mains, *sign_ins)),
        menus=tuple(menus),
    )


def _rank(window: Window) -> tuple[bool, int]:
    """Which of several windows with one title is the real one: seen, then largest."""
    return window.viewable, window.region.width * window.region.height


def entry_region(window: Window) -> Region:
    """Where the entry lies in the main window, by the window's present size."""
    left, top, right, bottom = theme.ENTRY_INSET
    x = theme.SIDE + 1 + left
    y = window.region.height - theme.COMPOSER + top
    return Region(
        x, y, window.region.width - right - x, theme.COMPOSER - top - bottom
    )  # fmt: skip


def entry_is_empty(picture: Image.Image) -> bool:
    """Whether the entry's picture shows nothing but, perhaps, a caret."""
    return not vision.changed(Image.new("RGB", picture.size, theme.PAPER), picture)
