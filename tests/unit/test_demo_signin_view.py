"""The sign-in window's screens, as the app drew them and as they can look when something is wrong.

The pictures in `pictures/` are captures of the running app.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageDraw

from bridge.apps.demo_signin import data_url, expiry
from bridge.apps.demo_signin_view import read_sign_in
from bridge.demoapp import marks, signing, theme
from bridge.model import LoginState
from ui_backends import qr

PICTURES = Path(__file__).parent / "pictures"
SCREENS = {
    "qr": LoginState.QR,
    "expired": LoginState.QR,
    "confirm": LoginState.CONFIRM,
    "starting": LoginState.STARTING,
}


def recorded(screen: str) -> Image.Image:
    with Image.open(PICTURES / f"sign-in-{screen}.png") as picture:
        return picture.convert("RGB")


def covered(picture: Image.Image, box: tuple[int, int, int, int], colour: str) -> Image.Image:
    ImageDraw.Draw(picture).rectangle(box, fill=colour)
    return picture


def mark_box() -> tuple[int, int, int, int]:
    x, y = theme.MARK_AT
    return x, y, x + marks.SIZE, y + marks.SIZE


@pytest.mark.parametrize("screen", SCREENS)
def test_each_screen_is_told(screen):
    seen = read_sign_in(recorded(screen))
    assert (seen.screen, seen.state) == (screen, SCREENS[screen])
    assert (seen.code is not None) == (screen == "qr")


def test_every_screen_has_a_state_and_a_picture():
    assert set(SCREENS) == set(marks.MARKS)


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("colour", [theme.PAPER, "black", theme.ACCENT])
def test_a_covered_sign_is_unknown_whatever_else_shows(screen, colour):
    seen = read_sign_in(covered(recorded(screen), mark_box(), colour))
    assert (seen.screen, seen.state) == (None, LoginState.UNKNOWN)


@pytest.mark.parametrize("screen", SCREENS)
def test_half_a_sign_is_unknown(screen):
    left, top, right, bottom = mark_box()
    half = covered(recorded(screen), (left, top, (left + right) // 2, bottom), theme.PAPER)
    assert read_sign_in(half).state is LoginState.UNKNOWN


@pytest.mark.parametrize("colour", ["black", "white", theme.PAPER, "#808080"])
def test_a_blank_window_is_blank_and_never_signed_out(colour):
    seen = read_sign_in(Image.new("RGB", (theme.SIGN_IN_WIDTH, theme.SIGN_IN_HEIGHT), colour))
    assert seen.state is LoginState.UNKNOWN
    assert seen.evidence == {"screen_blank": True}


def test_the_sign_without_its_code_is_unknown():
    x, y, width, height = theme.QR_BOX
    picture = covered(recorded("qr"), (x, y, x + width, y + height), theme.PAPER)
    assert read_sign_in(picture).state is LoginState.UNKNOWN


def test_a_half_drawn_code_is_unknown():
    x, y, width, height = theme.QR_BOX
    picture = covered(recorded("qr"), (x, y + height // 2, x + width, y + height), theme.PAPER)
    assert read_sign_in(picture).state is LoginState.UNKNOWN


def test_a_window_of_another_size_is_unknown():
    assert read_sign_in(recorded("qr").resize((600, 800))).state is LoginState.UNKNOWN
    assert read_sign_in(recorded("qr").crop((0, 0, 300, 399))).state is LoginState.UNKNOWN


def test_another_programs_picture_is_unknown():
    noise = Image.effect_noise((theme.SIGN_IN_WIDTH, theme.SIGN_IN_HEIGHT), 90).convert("RGB")
    assert read_sign_in(noise).state is LoginState.UNKNOWN
    assert read_sign_in(ImageChops.invert(recorded("confirm"))).state is LoginState.UNKNOWN


def test_the_code_that_is_cut_out_reads_the_same_and_has_its_quiet_zone():
    picture = recorded("qr")
    (code,) = qr.read_codes(picture)
    alone = qr.cut_out(picture, code)
    (again,) = qr.read_codes(alone.convert("RGB"))
    assert again.payload == code.payload
    modules = 33  # 4 * 4 + 17: the size a code of 54 to 62 letters has at level M
    quiet = 4 * code.region.width / modules
    assert min(again.region.x, again.region.y) >= quiet
    assert alone.width - again.region.x - again.region.width >= quiet
    assert {value for _, value in alone.getcolors() or ()} == {0, 255}


def test_two_codes_in_one_picture_are_told_apart():
    both = Image.new("RGB", (600, 400), "white")
    both.paste(recorded("qr"), (0, 0))
    both.paste(recorded("qr"), (300, 0))
    one, two = qr.read_codes(both)
    assert one.region.x < 300 < two.region.x


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (signing.new_payload(1_800_000_000.9, 120), "2027-01-15T08:02:00.000Z"),
        ("https://demo.invalid/sign-in/abc", None),
        ("https://demo.invalid/sign-in/abc?until=soon", None),
    ],
)
def test_a_code_says_until_when_it_holds(payload, said):
    assert expiry(payload) == said


def test_no_two_codes_are_alike():
    assert len({signing.new_payload(1.0, 1.0) for _ in range(1000)}) == 1000


def test_a_picture_becomes_a_data_url():
    assert data_url(Image.new("L", (3, 2))).startswith("data:image/png;base64,iVBORw0KGgo")
