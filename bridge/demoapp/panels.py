"""Panels: windows beside the main one, each with a title that tells all they hold.

A `RowsPanel` is a list with a search above it; a `Form` has fields and one button. Escape closes
both; Ctrl+Return (Return where no field has several lines) presses the button.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence
from typing import Protocol

from bridge.demoapp import theme, titles
from bridge.demoapp.windows import claim


class Surroundings(Protocol):
    """What a panel asks of the app."""

    fonts: theme.Fonts

    def later(self, action: Callable[[], None]) -> None:
        """Do it now, or after the delay of slow drawing."""
        ...

    def happened(self, moment: str) -> None:
        """Something happened that a fault may be waiting for."""
        ...


class Panel:
    """A window with a title. Gone with its parent."""

    def __init__(
        self, parent: tk.Toplevel, around: Surroundings, name: str, *about: str, size: str
    ) -> None:
        self.around = around
        self._name, self._about = name, about
        self._parent = parent
        self.window = window = tk.Toplevel(
            parent, class_=titles.WM_CLASS, background=theme.PAPER, padx=16, pady=14
        )
        window.withdraw()
        window.transient(parent)
        window.attributes("-type", "dialog")
        claim(window, self.close)
        window.bind("<Escape>", lambda _event: self.close())
        window.geometry(
            f"{size}+{max(0, parent.winfo_rootx() + 80)}+{max(0, parent.winfo_rooty() + 30)}"
        )
        heading = tk.Label(window, text=" · ".join((name, *about)), font=around.fonts.title)
        heading.configure(background=theme.PAPER, foreground=theme.INK, anchor="w")
        heading.pack(fill="x", pady=(0, 8))

    @property
    def alive(self) -> bool:
        """Whether it has not been closed."""
        return bool(self.window.winfo_exists())

    def parts(self) -> Sequence[str]:
        """What the title says beside the name."""
        return ()

    def retitle(self) -> None:
        """Let the title tell what the panel holds now."""
        if self.alive:
            self.window.title(titles.panel_title(self._name, *self._about, *self.parts()))

    def show(self, first: tk.Misc) -> None:
        """Appear, once it is complete, with the focus where it is to be first."""
        self.retitle()
        self.window.deiconify()
        first.focus_force()

    def close(self) -> None:
        """Take it away; idempotent."""
        if self.alive:
            self.window.destroy()
            if self._parent.winfo_exists():
                (self._parent.focus_lastfor() or self._parent).focus_force()

    def _paste(self, insert: Callable[[str], None], moment: str) -> None:
        try:
            text = self.window.clipboard_get(type="UTF8_STRING")
        except tk.TclError:  # nobody owns it, or it holds no text
            text = ""
        self.around.happened(moment)

        def arrive() -> None:
            if self.alive:
                insert(text)
                self._arrived()

        self.around.later(arrive)

    def _arrived(self) -> None:
        """A text that was pasted is there."""
        self.retitle()

    def _label(self, words: str) -> None:
        label = tk.Label(self.window, text=words, font=self.around.fonts.small, anchor="w")
        label.configure(background=theme.PAPER, foreground=theme.MUTED)
        label.pack(fill="x", pady=(6, 0))

    def _framed(self, *, grow: bool = False) -> tk.Frame:
        box = tk.Frame(self.window, background=theme.PAPER)
        box.configure(highlightthickness=1, highlightbackground=theme.LINE)
        box.configure(highlightcolor=theme.ACCENT)
        box.pack(fill="both" if grow else "x", expand=grow, pady=(2, 2))
        return box


def key(action: Callable[[], object]) -> Callable[[tk.Event[tk.Misc]], str]:
    """A key's handler that lets nothing else handle it."""

    def handler(_event: tk.Event[tk.Misc]) -> str:
        action()
        return "break"

    return handler
