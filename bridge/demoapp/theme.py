"""Colours, fonts and sizes of the demo app. Sizes are pixels; adapters rely on some of them."""

from __future__ import annotations

import tkinter as tk
from tkinter import font as tkfont

WIDTH, HEIGHT = 880, 640
"""The main window at start."""

SIGN_IN_WIDTH, SIGN_IN_HEIGHT = 300, 400
QR_BOX = (50, 92, 200, 200)
"""Where the sign-in window shows its QR code: x, y, width, height."""
MARK_AT = (130, 344)
"""Left and top of the sign that tells the sign-in window's screens apart (`demoapp.marks`)."""

SIDE = 264
"""Width of the contact list, at the left."""

COMPOSER = 120
"""Height of the entry's panel, at the bottom of the chat."""

ENTRY_INSET = (16, 12, 16, 36)
"""Left, top, right and bottom space around the entry in its panel."""

INK = "#1d2733"
MUTED = "#7b8794"
LINE = "#e3e7ec"
PAPER = "#ffffff"
SIDE_BG = "#f5f7f9"
SIDE_HOT = "#dcecfb"
SIDE_OPEN = "#e9edf2"
CHAT_BG = "#eef2f5"
ACCENT = "#2481cc"
MINE = "#d6ebff"
THEIRS = "#ffffff"
GOOD = "#2fb562"
WARN = "#e8a33d"
DEAD = "#a9b3bd"

AVATARS = ("#e17076", "#7bc862", "#65aadd", "#a695e7", "#ee7aae", "#6ec9cb", "#faa774")
"""Avatar colours; a contact's place in the list picks one."""

PRESENCE = {"online": GOOD, "away": WARN, "offline": DEAD}


class Fonts:
    """The fonts in use: one that has Chinese where it is installed."""

    def __init__(self, root: tk.Tk) -> None:
        family = "Noto Sans CJK SC"
        if family not in tkfont.families(root):
            family = tkfont.nametofont("TkDefaultFont", root).actual("family")
        self.text = (family, -14)
        self.bold = (family, -14, "bold")
        self.small = (family, -11)
        self.title = (family, -16, "bold")
        self.avatar = (family, -15, "bold")
        self.big = (family, -20, "bold")
