"""Reading QR codes out of pictures, and cutting them out so that another camera can read them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import zxingcpp
from PIL import Image, ImageOps

from ui_backends.base import Region

QUIET_MODULES = 4
"""Modules of white that the standard asks for around a code."""

FEWEST_MODULES = 21
"""Modules across the smallest code: the widest a module can be, for a code of known size."""


@dataclass(frozen=True, slots=True)
class Code:
    """A code that was read: its text, and where it lies in the picture, without quiet zone."""

    payload: str
    region: Region


def read_codes(picture: Image.Image) -> list[Code]:
    """Every QR code in the picture that can be read whole, from left to right."""
    found = zxingcpp.read_barcodes(
        picture,
        formats=zxingcpp.BarcodeFormats(zxingcpp.BarcodeFormat.QRCode),
        try_rotate=False,
        try_invert=False,
        text_mode=zxingcpp.TextMode.Plain,
    )
    codes = [Code(one.text, _region(one.position, picture.size)) for one in found if one.text]
    return sorted(codes, key=lambda code: code.region.x)


def _region(position: zxingcpp.Position, size: tuple[int, int]) -> Region:
    corners = (
        position.top_left,
        position.top_right,
        position.bottom_right,
        position.bottom_left,
    )
    x, y = min(corner.x for corner in corners), min(corner.y for corner in corners)
    right = min(size[0], max(corner.x for corner in corners) + 1)
    bottom = min(size[1], max(corner.y for corner in corners) + 1)
    return Region(max(0, x), max(0, y), right - max(0, x), bottom - max(0, y))


def cut_out(picture: Image.Image, code: Code) -> Image.Image:
    """The code alone in black and white, with a quiet zone that suffices for any size of code."""
    where = code.region
    inside = picture.convert("L").crop(
        (where.x, where.y, where.x + where.width, where.y + where.height)
    )
    crisp = inside.point(lambda value: 255 if value > 127 else 0)
    quiet = math.ceil(max(crisp.size) * QUIET_MODULES / FEWEST_MODULES)
    return ImageOps.expand(crisp, border=quiet, fill=255)
