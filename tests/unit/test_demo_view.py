"""What is read off the demo app's titles, and what its own title writer makes of every state."""

from __future__ import annotations

import pytest
from PIL import Image, ImageDraw

from bridge.apps.demo_screen import choose
from bridge.apps.demo_view import Hits, MainTitle, Named, entry_is_empty, parse_title, view_of
from bridge.demoapp import titles
from bridge.demoapp.contacts import CONTACTS, Contact, search
from bridge.demoapp.search_state import Search
from bridge.errors import BridgeError
from ui_backends.base import Region, Window


def window(title: str, *, size: int = 100, viewable: bool = True, wm_class: str = titles.WM_CLASS):
    region = Region(0, 0, size, size)
    return Window(size, title, ("x", wm_class), "", 7, region, viewable, managed=True)


@pytest.mark.parametrize(
    ("title", "meaning"),
    [
        ("Demo Chat - demo", MainTitle("demo")),
        ("Demo Chat - demo (offline)", MainTitle("demo", offline=True)),
        (
            "Demo Chat - demo - Alice Smith [alice.smith]",
            MainTitle("demo", chat=Named("alice.smith", "Alice Smith")),
        ),
        (
            "Demo Chat - demo (offline) - Boss / 张三 [zhangsan]",
            MainTitle("demo", offline=True, chat=Named("zhangsan", "张三", "Boss")),
        ),
        ("Demo Chat - demo - search", MainTitle("demo", searching=True)),
        (
            "Demo Chat - demo - search: no hits",
            MainTitle("demo", searching=True, hits=Hits(0, 0, None)),
        ),
        (
            "Demo Chat - demo - search 2/3: Alice Smith [alice.smith]",
            MainTitle("demo", searching=True, hits=Hits(2, 3, Named("alice.smith", "Alice Smith"))),
        ),
        (
            "Demo Chat - demo - search 1/1: twice [x]",
            MainTitle("demo", searching=True, hits=Hits(1, 1, Named("x", "twice"))),
        ),
        ("Demo Chat - Sign in", None),
        ("Notice", None),
        ("Other - demo", None),
    ],
)
def test_a_title_means(title, meaning):
    assert parse_title(title) == meaning


@pytest.mark.parametrize("contact", [*CONTACTS, Contact("x-1", "A - B", remark="search")])
@pytest.mark.parametrize("offline", [False, True])
def test_what_the_app_writes_is_what_is_read(contact, offline):
    named = Named(contact.id, contact.name, contact.remark)
    chat = titles.main_title("demo", offline=offline, chat=contact, search=None)
    assert parse_title(chat) == MainTitle("demo", offline, chat=named)
    found = Search("q", (contact, contact), 1).title
    searching = titles.main_title("demo", offline=offline, chat=contact, search=found)
    assert parse_title(searching) == MainTitle(
        "demo", offline, searching=True, hits=Hits(2, 2, named)
    )


def test_a_search_finds_parts_of_id_name_and_remark_in_any_case():
    assert [c.id for c in search(CONTACTS, "ALICE")] == ["alice", "alice.smith"]
    assert [c.id for c in search(CONTACTS, "李")] == ["lilei.1", "lilei.2"]
    assert [c.id for c in search([Contact("a", "b", remark="Boss")], "oss")] == ["a"]
    assert search(CONTACTS, "carol") == []


def test_the_highlight_stops_at_the_ends():
    hits = tuple(search(CONTACTS, "alice"))
    assert Search("alice", hits).moved(-1).position == 0
    assert Search("alice", hits).moved(5).position == 1
    assert Search("zzz", ()).moved(1).highlighted is None


ALICE, SMITH = Named("alice", "Alice"), Named("alice.smith", "Alice Smith")
TWINS = [Named("lilei.1", "李雷"), Named("lilei.2", "李雷")]


def test_only_the_exact_contact_is_chosen():
    assert choose([SMITH, ALICE], "Alice") == 1
    assert choose([ALICE, SMITH], "alice.smith") == 1
    assert choose([Named("z", "Z", "Boss"), ALICE], "Boss") == 0
    assert choose(TWINS, "lilei.2") == 1


@pytest.mark.parametrize("wanted", ["Ali", "alice ", "Alice smith", "ALICE"])
def test_a_near_miss_is_nobody(wanted):
    with pytest.raises(BridgeError) as caught:
        choose([ALICE, SMITH], wanted)
    assert (caught.value.code, caught.value.executed) == ("CONTACT_NOT_FOUND", False)


def test_two_of_one_name_are_told_as_candidates():
    with pytest.raises(BridgeError) as caught:
        choose(TWINS, "李雷")
    assert (caught.value.code, caught.value.executed) == ("AMBIGUOUS_CONTACT", False)
    assert [c["id"] for c in caught.value.extra["candidates"]] == ["lilei.1", "lilei.2"]


def test_a_hidden_twin_is_not_the_main_window():
    seen, hidden = window("Demo Chat - demo", size=50), window("Demo Chat - demo", viewable=False)
    assert view_of([hidden, seen]).main == seen


def test_another_programs_window_is_not_ours():
    view = view_of([window("Demo Chat - demo", wm_class="Firefox"), window("Notice", wm_class="X")])
    assert (view.main, view.dialogs) == (None, ())


def test_a_caret_leaves_the_entry_empty_and_a_letter_does_not():
    picture = Image.new("RGB", (200, 60), "white")
    ImageDraw.Draw(picture).rectangle((3, 2, 4, 21), fill="black")
    assert entry_is_empty(picture)
    ImageDraw.Draw(picture).text((20, 4), "a", fill="black")
    assert not entry_is_empty(picture)
