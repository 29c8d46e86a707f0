"""Text fields that behave as people expect: Ctrl+A selects all, a paste replaces a selection.

Tk's own Ctrl+A goes to the start of the line, and its paste leaves the selection where it is.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable

from bridge.demoapp import theme

PasteText = Callable[[Callable[[str], None]], None]
"""Reads the clipboard and hands the text on, now or, when drawing is slow, later."""


def make_entry(parent: tk.Misc, font: tuple[str, int], paste_text: PasteText) -> tk.Entry:
    """A single line without a frame."""
    entry = tk.Entry(parent, font=font, relief="flat", borderwidth=0, highlightthickness=0)
    entry.configure(background=theme.PAPER, foreground=theme.INK)

    def insert(text: str) -> None:
        if entry.selection_present():
            entry.delete("sel.first", "sel.last")
        entry.insert("insert", text.replace("\n", " "))

    def paste(_event: tk.Event[tk.Misc]) -> str:
        paste_text(insert)
        return "break"

    def select_all(_event: tk.Event[tk.Misc]) -> str:
        entry.selection_range(0, "end")
        entry.icursor("end")
        return "break"

    entry.bind("<<Paste>>", paste)
    entry.bind("<Control-a>", select_all)
    return entry


def make_text(parent: tk.Misc, font: tuple[str, int], paste_text: PasteText) -> tk.Text:
    """Several lines without a frame."""
    field = tk.Text(parent, font=font, relief="flat", borderwidth=0, highlightthickness=0)
    field.configure(background=theme.PAPER, foreground=theme.INK, wrap="word", undo=False)
    # a letter that reaches into the caret then leaves no trace on it, so that a caret always
    # looks like one
    field.configure(insertbackground=theme.INK)

    def insert(text: str) -> None:
        if field.tag_ranges("sel"):
            field.delete("sel.first", "sel.last")
        field.insert("insert", text)
        field.see("insert")

    def paste(_event: tk.Event[tk.Misc]) -> str:
        paste_text(insert)
        return "break"

    def select_all(_event: tk.Event[tk.Misc]) -> str:
        field.tag_add("sel", "1.0", "end-1c")
        field.mark_set("insert", "end-1c")
        return "break"

    field.bind("<<Paste>>", paste)
    field.bind("<Control-a>", select_all)
    return field
