"""A panel with fields and one button; what each field holds is told in the title."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence

from bridge.demoapp import theme, titles
from bridge.demoapp.contacts import Contact, search
from bridge.demoapp.editing import make_entry, make_text
from bridge.demoapp.files import ChosenFile, chosen_file
from bridge.demoapp.panels import Panel, Surroundings, key
from bridge.demoapp.search_state import Search

Field = tk.Entry | tk.Text


class Form(Panel):
    """Fields are added in order, the first has the focus; `submit` is what the button does.

    `submit` returns whether it is done, which closes the form.
    """

    def __init__(
        self,
        parent: tk.Toplevel,
        around: Surroundings,
        name: str,
        *about: str,
        button: str,
        submit: Callable[[Form], bool],
    ) -> None:
        super().__init__(parent, around, name, *about, size="460x420")
        self._button = button
        self._submit = submit
        self._said: list[Callable[[], str]] = []
        self._fields: list[Field] = []

    def parts(self) -> Sequence[str]:
        """What the fields hold."""
        return [say() for say in self._said]

    def _add(self, field: Field) -> None:
        self._fields.append(field)
        field.bind("<Tab>", key(lambda: self._next(field)))
        field.bind("<Control-Return>", key(self._go))
        field.bind("<KeyRelease>", lambda _event: self._arrived(), add="+")

    def _next(self, field: Field) -> None:
        place = self._fields.index(field)
        self._fields[(place + 1) % len(self._fields)].focus_set()

    def _go(self) -> None:
        if self._submit(self):
            self.close()

    def line(self, name: str, say: Callable[[str], str] | None = None) -> Callable[[], str]:
        """A field of one line; returns what reads it. `say` is what the title tells of it."""
        self._label(name)
        entry = make_entry(
            self._framed(), self.around.fonts.text, lambda insert: self._paste(insert, "paste")
        )
        entry.pack(fill="x", ipady=4, padx=6)
        self._add(entry)
        entry.bind("<Return>", key(self._go))
        self._said.append(lambda: say(entry.get()) if say else titles.text_part(name, entry.get()))
        return entry.get

    def text(self, name: str, say: Callable[[str], str] | None = None) -> Callable[[], str]:
        """A field of several lines."""
        self._label(name)
        field = make_text(
            self._framed(grow=True),
            self.around.fonts.text,
            lambda insert: self._paste(insert, "paste"),
        )
        field.configure(height=4)
        field.pack(fill="both", expand=True, padx=6, pady=4)
        self._add(field)

        def read() -> str:
            return field.get("1.0", "end-1c")

        self._said.append(lambda: say(read()) if say else titles.text_part(name, read()))
        return read

    def files(self, name: str) -> Callable[[], list[ChosenFile] | None]:
        """A field of `file:` URIs, one a line; what reads it gives None while one is missing."""
        known: dict[str, ChosenFile | None] = {}

        def look(said: str) -> list[ChosenFile] | None:
            wanted = said.split()
            for location in set(known) - set(wanted):
                del known[location]
            for location in wanted:
                if known.get(location) is None:
                    known[location] = chosen_file(location)
            found = [known[location] for location in wanted]
            return None if None in found else [file for file in found if file]

        def say(said: str) -> str:
            found = look(said)
            if found is None:
                return f"{name} missing"
            return titles.files_part(name, [(file.size, file.sha256) for file in found])

        read = self.text(name, say)
        return lambda: look(read())

    def contact(self, name: str, among: Callable[[], Sequence[Contact]]) -> Callable[[], Search]:
        """A search for one contact; Down and Up move through the hits."""
        now = Search()

        def found(said: str) -> Search:
            nonlocal now
            if said != now.query:
                now = Search(said, tuple(search(among(), said)))
            return now

        def move(steps: int) -> None:
            nonlocal now
            now = now.moved(steps)
            self.retitle()

        def say(said: str) -> str:
            state = found(said)
            labels = [hit.label for hit in state.hits]
            return titles.rows_part(name, state.query, labels, state.position)

        read = self.line(name, say)
        entry = self._fields[-1]
        entry.bind("<Down>", key(lambda: move(1)))
        entry.bind("<Up>", key(lambda: move(-1)))
        return lambda: found(read())

    def note(self, words: str) -> None:
        """A sentence."""
        label = tk.Label(self.window, text=words, font=self.around.fonts.text, anchor="w")
        label.configure(background=theme.PAPER, foreground=theme.INK, wraplength=420)
        label.configure(justify="left")
        label.pack(fill="x", pady=(4, 8))

    def open(self) -> Form:
        """Draw the button and show the form."""
        button = tk.Button(self.window, text=self._button, font=self.around.fonts.text)
        button.configure(command=self._go, background=theme.ACCENT, foreground=theme.PAPER)
        button.configure(relief="flat", borderwidth=0, padx=16, pady=5)
        button.pack(side="bottom", anchor="e", pady=(8, 0))
        if not self._fields:
            button.bind("<Control-Return>", key(self._go))
            button.bind("<Return>", key(self._go))
        self.show(self._fields[0] if self._fields else button)
        return self
