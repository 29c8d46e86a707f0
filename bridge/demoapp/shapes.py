"""Smooth round shapes and the QR code, drawn into Tk images by hand: Tk's own have stairs."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Sequence

import segno

Colour = tuple[int, int, int]


def rgb(colour: str) -> Colour:
    """The parts of `#rrggbb`."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def coverage(x: int, y: int, radius: float) -> float:
    """How much of pixel (x, y) a disc of that radius around (radius, radius) covers, 0 to 1."""
    distance = ((x + 0.5 - radius) ** 2 + (y + 0.5 - radius) ** 2) ** 0.5
    return float(max(0.0, min(1.0, radius - distance + 0.5)))


def mixed(front: Colour, back: Colour, share: float) -> bytes:
    """The colour between two, as three bytes."""
    return bytes(round(b + (f - b) * share) for f, b in zip(front, back, strict=True))


class Shapes:
    """Makes discs and bubble corners once each and keeps them (Tk forgets unheld images)."""

    def __init__(self, root: tk.Misc) -> None:
        self._root = root
        self._discs: dict[tuple[int, str, str], tk.PhotoImage] = {}
        self._corners: dict[tuple[int, str, str], Sequence[tk.PhotoImage]] = {}

    def disc(self, size: int, colour: str, back: str) -> tk.PhotoImage:
        """A filled circle of `size` pixels on its background."""
        key = (size, colour, back)
        if key not in self._discs:
            front, behind = rgb(colour), rgb(back)
            data = b"".join(
                mixed(front, behind, coverage(x, y, size / 2))
                for y in range(size)
                for x in range(size)
            )
            self._discs[key] = image = photo(self._root, size, size, data)
            for x, y in ((x, y) for y in range(size) for x in range(size)):
                if coverage(x, y, size / 2) == 0:
                    # outside the circle whatever lies behind it shows, say another disc
                    self._root.tk.call(image, "transparency", "set", x, y, True)
        return self._discs[key]

    def corners(self, radius: int, colour: str, back: str) -> Sequence[tk.PhotoImage]:
        """The quarters of a circle: top left, top right, bottom left, bottom right."""
        key = (radius, colour, back)
        if key not in self._corners:
            disc = self.disc(2 * radius, colour, back)
            self._corners[key] = [
                self._part(disc, x, y, radius) for y in (0, radius) for x in (0, radius)
            ]
        return self._corners[key]

    def _part(self, source: tk.PhotoImage, x: int, y: int, size: int) -> tk.PhotoImage:
        part = tk.PhotoImage(master=self._root, width=size, height=size)
        self._root.tk.call(part, "copy", source, "-from", x, y, x + size, y + size)
        return part


def photo(root: tk.Misc, width: int, height: int, data: bytes) -> tk.PhotoImage:
    """An image from RGB bytes."""
    return tk.PhotoImage(master=root, data=b"P6 %d %d 255\n" % (width, height) + data, format="PPM")


def rounded(
    canvas: tk.Canvas,
    box: tuple[int, int, int, int],
    radius: int,
    corners: Sequence[tk.PhotoImage],
    colour: str,
) -> None:
    """Draw a filled rounded rectangle; `box` is left, top, right, bottom."""
    left, top, right, bottom = box
    canvas.create_rectangle(left + radius, top, right - radius, bottom, fill=colour, width=0)
    canvas.create_rectangle(left, top + radius, right, bottom - radius, fill=colour, width=0)
    places = [(x, y) for y in (top, bottom - radius) for x in (left, right - radius)]
    for (x, y), corner in zip(places, corners, strict=True):
        canvas.create_image(x, y, image=corner, anchor="nw")


def qr_image(root: tk.Misc, payload: str, size: int, ink: str) -> tk.PhotoImage:
    """A QR code, as large as fits into `size` pixels in whole pixels per module."""
    code = segno.make_qr(payload, error="m")
    border = 3
    scale = max(1, size // (code.symbol_size(border=border)[0]))
    rows = [bytes(row) for row in code.matrix_iter(scale=scale, border=border)]
    white, dark = b"\xff\xff\xff", bytes(rgb(ink))
    data = b"".join(dark if module else white for row in rows for module in row)
    return photo(root, len(rows[0]), len(rows), data)
