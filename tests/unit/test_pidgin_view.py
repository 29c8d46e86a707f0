"""Which sign-in state a look at Pidgin means, and the entry in a picture of a conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import Image, ImageDraw

from bridge.apps.pidgin_files import Account
from bridge.apps.pidgin_picture import find_entry
from bridge.apps.pidgin_view import START_PATIENCE, Seen, reading
from bridge.model import LoginState
from ui_backends.base import Region, Window

ON = Account("alice@h/pidgin", "prpl-jabber", "Alice", enabled=True, error=None)
OFF = replace(ON, enabled=False)
OTHER = replace(ON, name="eve@h/pidgin")


def window(role: str, title: str) -> Window:
    size = Region(0, 0, 100, 100)
    return Window(1, title, ("Pidgin", "Pidgin"), role, 7, size, viewable=True, managed=True)


LIST = window("buddy_list", "Buddy List")
ASKS = window("multifield", "Pidgin")
UP = Seen(LIST, (LIST,), (ON,), (), age=1.0)


@pytest.mark.parametrize(
    ("seen", "state", "account"),
    [
        (Seen(), LoginState.UNKNOWN, None),
        (UP, LoginState.STARTING, "alice@h"),
        (replace(UP, age=START_PATIENCE + 1), LoginState.OFFLINE, "alice@h"),
        (replace(UP, was_online=True), LoginState.OFFLINE, "alice@h"),
        (replace(UP, online=(ON,)), LoginState.LOGGED_IN, "alice@h"),
        (replace(UP, accounts=(OFF,), online=(OFF,)), LoginState.LOGGED_IN, "alice@h"),
        (replace(UP, online=(ON, OTHER)), LoginState.UNKNOWN, None),
        (replace(UP, online=None), LoginState.UNKNOWN, None),
        (replace(UP, trouble="accounts.xml is not readable"), LoginState.UNKNOWN, None),
        (replace(UP, accounts=(OFF,)), LoginState.LOGGED_OUT, None),
        (replace(UP, accounts=()), LoginState.LOGGED_OUT, None),
        (
            replace(UP, windows=(LIST, ASKS), accounts=(replace(ON, password=False),)),
            LoginState.LOGGED_OUT,
            "alice@h",
        ),
        (replace(UP, windows=(LIST, ASKS)), LoginState.STARTING, "alice@h"),
    ],
)
def test_reading(seen: Seen, state: LoginState, account: str | None):
    read = reading(seen)
    assert (read.state, read.account) == (state, account)


def test_wrong_password_is_told_in_the_evidence():
    read = reading(replace(UP, accounts=(replace(OFF, error="Incorrect password"),)))
    assert read.state is LoginState.LOGGED_OUT
    assert read.evidence["errors"] == {"alice@h": "Incorrect password"}


# --- the entry

GREY, INK = (220, 218, 213), (0, 0, 0)


def conversation(paper: tuple[int, int, int] = (255, 255, 255)) -> Image.Image:
    """A window like Pidgin's: history above, entry below, each in a frame."""
    picture = Image.new("RGB", (340, 390), GREY)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, 339, 389), outline=(120, 120, 120))
    draw.rectangle((9, 74, 331, 300), fill=paper, outline=INK)
    draw.rectangle((9, 320, 331, 380), fill=paper, outline=INK)
    return picture


@pytest.mark.parametrize("paper", [(255, 255, 255), (30, 30, 40)])
def test_entry_is_the_lower_box_in_any_colour(paper: tuple[int, int, int]):
    entry = find_entry(conversation(paper))
    assert entry is not None
    assert entry.region == Region(10, 321, 321, 59)
    assert entry.empty


def test_caret_at_its_place_is_empty_and_a_thin_letter_is_not():
    picture = conversation()
    ImageDraw.Draw(picture).line((12, 324, 12, 340), fill=INK)
    with_caret = find_entry(picture)
    assert with_caret is not None
    assert with_caret.empty
    ImageDraw.Draw(picture).line((15, 324, 15, 340), fill=INK)
    with_letter = find_entry(picture)
    assert with_letter is not None
    assert not with_letter.empty


def test_scroll_bar_below_does_not_hide_the_entry():
    picture = conversation()
    ImageDraw.Draw(picture).rectangle((10, 364, 330, 379), fill=(200, 198, 190), outline=INK)
    entry = find_entry(picture)
    assert entry is not None
    assert entry.region.y == 321
    assert entry.region.height == 43


def test_a_draft_is_compared_exactly():
    picture = conversation()
    ImageDraw.Draw(picture).text((14, 326), "hello", fill=INK)
    draft = find_entry(picture)
    assert draft is not None
    ImageDraw.Draw(picture).point((200, 350), fill=INK)
    changed = find_entry(picture)
    assert changed is not None
    assert draft.shows(draft.image)
    assert not changed.shows(draft.image)


@pytest.mark.parametrize("size", [(1, 1), (340, 20), (20, 390), (340, 390)])
def test_no_entry_in_a_plain_picture(size: tuple[int, int]):
    assert find_entry(Image.new("RGB", size, GREY)) is None
