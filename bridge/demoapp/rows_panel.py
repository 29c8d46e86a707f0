"""A panel with a list, a search above it, and keys that do something with the row at hand."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bridge.demoapp import theme, titles
from bridge.demoapp.editing import make_entry
from bridge.demoapp.panels import Panel, Surroundings, key


@dataclass(frozen=True, slots=True)
class Line:
    """A row: its id, the words that the title says of it, and what is drawn and searched."""

    id: str
    label: str
    shown: str

    def matches(self, query: str) -> bool:
        """Whether the search text is a part of the id or of what is shown, in any case."""
        wanted = query.casefold()
        return wanted in self.id.casefold() or wanted in self.shown.casefold()


class RowsPanel(Panel):
    """`lines` gives the rows as they are now; `keys` maps a key to what it does with a row.

    `commands` are keys that need no row.
    """

    def __init__(
        self,
        parent: tk.Toplevel,
        around: Surroundings,
        name: str,
        *about: str,
        lines: Callable[[], Sequence[Line]],
        keys: Mapping[str, tuple[str, Callable[[str], object]]],
        commands: Mapping[str, tuple[str, Callable[[], object]]] | None = None,
    ) -> None:
        super().__init__(parent, around, name, *about, size="560x420")
        self._lines = lines
        self._query = ""
        self._position = 0
        self._label("Find by words or id")
        self._entry = make_entry(
            self._framed(), around.fonts.text, lambda insert: self._paste(insert, "search")
        )
        self._entry.pack(fill="x", ipady=4, padx=6)
        self._list = tk.Listbox(self._framed(grow=True), font=around.fonts.text, borderwidth=0)
        self._list.configure(background=theme.PAPER, foreground=theme.INK, activestyle="none")
        self._list.configure(selectbackground=theme.SIDE_HOT, selectforeground=theme.INK)
        self._list.configure(highlightthickness=0, exportselection=False, takefocus=0)
        self._list.pack(fill="both", expand=True)
        self._list.bind("<ButtonRelease-1>", lambda event: self._picked(event.y))
        commands = commands or {}
        said = [*((n, words) for n, (words, _) in (*keys.items(), *commands.items()))]
        self._label(
            " · ".join(f"{name_of_key.strip('<>')}: {words}" for name_of_key, words in said)
        )
        self._entry.bind("<KeyRelease>", lambda _event: self._typed())
        self._entry.bind("<Down>", key(lambda: self._move(1)))
        self._entry.bind("<Up>", key(lambda: self._move(-1)))
        for name_of_key, (_, action) in keys.items():
            self._entry.bind(name_of_key, self._on_row(action))
        for name_of_key, (_, command) in commands.items():
            self._entry.bind(name_of_key, key(command))
        self.refresh()
        self.show(self._entry)

    def _hits(self) -> list[Line]:
        return [line for line in self._lines() if line.matches(self._query)]

    def parts(self) -> Sequence[str]:
        """How the search stands."""
        labels = [line.label for line in self._hits()]
        return (titles.rows_part("find", self._query, labels, self._position),)

    def refresh(self) -> None:
        """Draw the rows as they are now."""
        if not self.alive:
            return
        hits = self._hits()
        self._position = max(0, min(self._position, len(hits) - 1))
        self._list.delete(0, "end")
        for line in hits:
            self._list.insert("end", line.shown)
        if hits:
            self._list.selection_set(self._position)
            self._list.see(self._position)
        self.retitle()

    def _typed(self) -> None:
        if self._entry.get() != self._query:
            self.around.later(self._arrived)

    def _arrived(self) -> None:
        if self.alive and self._entry.get() != self._query:
            self._query, self._position = self._entry.get(), 0
            self.refresh()

    def _move(self, steps: int) -> None:
        self._position += steps
        self.refresh()

    def _picked(self, y: int) -> None:
        self._position = self._list.tk.getint(self._list.tk.call(self._list, "nearest", y))
        self.refresh()
        self._entry.focus_set()

    def _on_row(self, action: Callable[[str], object]) -> Callable[[tk.Event[tk.Misc]], str]:
        """A key that does something with the row at hand, once one was looked for."""

        def act() -> None:
            hits = self._hits()
            if self._query and hits:
                action(hits[self._position].id)
                self.refresh()

        return key(act)
