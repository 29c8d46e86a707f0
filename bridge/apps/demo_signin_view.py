"""What the demo app's sign-in window shows: its picture read as an answer. Pure.

Each screen has a sign of its own at one place, drawn from the same pixels that are compared here.
A picture that has none of them for certain is told as unknown, whatever else it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from PIL import Image

from bridge.demoapp import marks, theme
from bridge.model import Json, LoginState
from ui_backends import qr, vision
from ui_backends.base import Region

LOOSE = 2
"""Pixels by which the sign may lie beside its place."""

STATES: Mapping[str, LoginState] = {
    "qr": LoginState.QR,
    "expired": LoginState.QR,
    "confirm": LoginState.CONFIRM,
    "starting": LoginState.STARTING,
}


@dataclass(frozen=True, slots=True)
class SignIn:
    """What a picture says. `screen` is a name of `demoapp.marks`, None when it is not certain.

    `code` is there with the screen `qr`, and only with it.
    """

    screen: str | None
    code: qr.Code | None = None
    evidence: Mapping[str, Json] = field(default_factory=dict)

    @property
    def state(self) -> LoginState:
        """The sign-in state that goes with the screen."""
        return LoginState.UNKNOWN if self.screen is None else STATES[self.screen]


@lru_cache
def templates() -> tuple[vision.Template, ...]:
    """The signs of all screens."""
    size = (marks.SIZE, marks.SIZE)
    return tuple(
        vision.Template(name, Image.frombytes("RGB", size, marks.pixels(name)))
        for name in marks.MARKS
    )


def read_sign_in(picture: Image.Image) -> SignIn:
    """Which screen the sign-in window's picture shows."""
    if vision.blank(picture):
        return SignIn(None, evidence={"screen_blank": True})
    if picture.size != (theme.SIGN_IN_WIDTH, theme.SIGN_IN_HEIGHT):
        return SignIn(None, evidence={"size": list(picture.size)})
    x, y = theme.MARK_AT
    place = vision.around(Region(x, y, marks.SIZE, marks.SIZE), LOOSE, picture.size)
    verdict = vision.find(picture, templates(), region=place)
    scores: dict[str, Json] = {match.name: round(match.score, 3) for match in verdict.matches}
    if verdict.answer is not vision.Answer.YES or verdict.best is None:
        return SignIn(None, evidence={"scores": scores})
    screen = verdict.best.name
    evidence = {"screen": screen, "scores": scores}
    if screen != "qr":
        return SignIn(screen, evidence=evidence)
    codes = qr.read_codes(picture)
    if len(codes) != 1:
        # the sign without the code: half drawn, or something stands before it
        return SignIn(None, evidence={**evidence, "codes": len(codes)})
    return SignIn(screen, codes[0], evidence)
