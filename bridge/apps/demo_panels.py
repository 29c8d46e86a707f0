"""Working the demo app's panels: opened by keys, read by their titles, nothing else in the way.

A panel's title says all that its fields hold, so "as it should be" is one comparison, made
again right before the commit point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bridge.apps import demo_screen as screen
from bridge.apps.demo_view import Named, Row, parse_label, parse_rows
from bridge.demoapp import titles
from bridge.errors import BridgeError
from bridge.hands import Hands
from ui_backends.base import Window, WindowId

T = TypeVar("T")

PATIENCE = 8.0
"""Seconds in which a panel has to show what a key did."""


@dataclass
class Panel:
    """An open panel: its window, its name with what it is about, and what its fields hold."""

    window: Window
    name: str
    parts: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What its title has to be."""
        return titles.panel_title(self.name, *self.parts)


class Panels:
    """The panels that one flow has opened on the main window, one upon the other."""

    def __init__(self, hands: Hands, main: Window, owner: str | None) -> None:
        self.hands = hands
        self.main = main
        self.owner = owner
        self._stack: list[Panel] = []

    @property
    def top(self) -> Panel:
        """The one that was opened last."""
        return self._stack[-1]

    @property
    def windows(self) -> tuple[WindowId, ...]:
        """The windows of all of them."""
        return tuple(panel.window.id for panel in self._stack)

    async def open(self, *keys: str, name: str, about: Sequence[str] = ()) -> Panel:
        """Press the keys in the window at hand; the panel that opens then, with the focus.

        INVALID_STATE with the app's reason when it refuses.
        """
        opener = self.top.window if self._stack else self.main
        begin = titles.panel_title(name, *about)
        await self.hands.chord(*keys, window=opener.id)

        async def opened() -> Window | None:
            view = await screen.look(self.hands)
            new = [
                window
                for window in view.dialogs
                if window.id not in self.windows
                and (window.title == begin or window.title.startswith(f"{begin} - "))
            ]
            screen.undisturbed(view, {*self.windows, *(window.id for window in new)})
            return new[0] if len(new) == 1 else None

        window = await self.hands.until(f"the panel {name!r}", opened, timeout=PATIENCE)
        await self.hands.activate(window.id)
        panel = Panel(window, begin)
        self._stack.append(panel)
        return panel

    async def title(self) -> str:
        """The top panel's title now; FOCUS_LOST when anything else stands in the way."""
        view = await screen.look(self.hands)
        screen.undisturbed(view, self.windows)
        for window in view.dialogs:
            if window.id == self.top.window.id:
                return window.title
        raise BridgeError("WINDOW_NOT_FOUND", f"{self.top.name!r} was closed", executed=False)

    async def until(self, what: str, pick: Callable[[str], T | None]) -> T:
        """What `pick` makes of the top panel's title, as soon as it is not None."""

        async def seen() -> T | None:
            return pick(await self.title())

        return await self.hands.until(what, seen, timeout=PATIENCE)

    async def complete(self, what: str) -> None:
        """Wait until the title is exactly what it has to be."""
        await self.until(what, lambda title: title == self.top.title or None)

    async def form(self, *keys: str, name: str, about: Sequence[str], parts: Sequence[str]) -> None:
        """Open a form whose fields say `parts` when they are empty."""
        panel = await self.open(*keys, name=name, about=about)
        panel.parts = list(parts)
        await self.complete(f"the form {name!r}")

    async def fill(self, place: int, text: str, part: str) -> None:
        """Paste into the field that has the focus and wait until the title says `part` there."""
        if text:
            await self.hands.paste_text(self.top.window.id, text)
        self.top.parts[place] = part
        await self.complete(part.partition(" ")[0])

    async def tab(self) -> None:
        """On to the next field."""
        await self.hands.chord("Tab", window=self.top.window.id)

    # lists

    async def _row(self, word: str, position: int | None = None) -> Row:
        """How the search stands, once it has been answered (and is at `position`)."""
        head = self.top.title + " - "

        def pick(title: str) -> Row | None:
            row = parse_rows(word, title.removeprefix(head)) if title.startswith(head) else None
            return row if row and position in {None, row.position} else None

        return await self.until(f"the hits of {word!r}", pick)

    async def _search(self, word: str, wanted: str) -> list[str]:
        """Look for something; the labels of all hits. The last one is highlighted then."""
        await self.hands.paste_text(self.top.window.id, wanted)
        row = await self._row(word)
        if row.total > screen.MAX_HITS:
            raise BridgeError("NOT_FOUND", f"{row.total} hits are too many to read", executed=False)
        labels = [row.label] if row.total else []
        for position in range(2, row.total + 1):
            await self.hands.chord("Down", window=self.top.window.id)
            labels.append((await self._row(word, position)).label)
        return labels

    async def _settle(self, word: str, labels: Sequence[str], place: int) -> None:
        """Move the highlight back from the last hit, and note it as the title's end."""
        for position in range(len(labels) - 1, place, -1):
            await self.hands.chord("Up", window=self.top.window.id)
            await self._row(word, position)
        self.top.parts.append(titles.rows_part(word, "?", labels, place))
        await self.complete(f"hit {place + 1}")

    async def find(self, wanted: str, what: str) -> str:
        """Highlight the row with exactly this id; its label. NOT_FOUND."""
        labels = await self._search("find", wanted)
        meant = [place for place, label in enumerate(labels) if label.split(" ")[0] == wanted]
        if len(meant) != 1:
            raise BridgeError("NOT_FOUND", f"there is no {what} {wanted!r} here", executed=False)
        await self._settle("find", labels, meant[0])
        return labels[meant[0]]

    async def choose(self, word: str, wanted: str) -> Named:
        """Highlight the contact that is meant. CONTACT_NOT_FOUND, AMBIGUOUS_CONTACT."""
        self.top.parts.pop()  # the empty search, which the answered one replaces
        labels = await self._search(word, wanted)
        hits = [hit for label in labels if (hit := parse_label(label)) is not None]
        if len(hits) != len(labels):
            raise BridgeError("UI_ERROR", "the app shows a contact that cannot be read")
        place = screen.choose(hits, wanted)
        await self._settle(word, labels, place)
        return hits[place]

    # the end

    async def recheck(self) -> None:
        """Look again, right before the key: account, connection, the whole panel, the focus."""
        await screen.main_window(self.hands, self.owner, beside=self.windows)
        if await self.title() != self.top.title:
            raise BridgeError("VERIFY_FAILED", "the panel holds something else", executed=False)
        await screen.require_focus(self.hands, self.top.window.id)

    async def closed(self) -> None:
        """Wait until all of them are gone."""

        async def gone() -> bool | None:
            return None if {w.id for w in (await screen.look(self.hands)).dialogs} else True

        await self.hands.until("the end of the panels", gone, timeout=PATIENCE)

    async def leave(self) -> None:
        """Close them with Escape, the last one first."""
        while self._stack:
            await self.hands.chord("Escape", window=self.top.window.id)
            last = self._stack.pop().window.id

            async def gone(last: WindowId = last) -> bool | None:
                ids = {window.id for window in (await screen.look(self.hands)).dialogs}
                return None if last in ids else True

            await self.hands.until("the panel's end", gone, timeout=PATIENCE)
            if self._stack:
                await self.hands.activate(self.top.window.id)
