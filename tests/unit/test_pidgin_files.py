"""What Pidgin's files say: accounts, buddies, preferences, and its text log."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.apps.pidgin_disk import log_position, said_since
from bridge.apps.pidgin_files import (
    MAX_STANZA,
    PREFS,
    Account,
    Contact,
    check_text,
    find_said,
    logged,
    merge_prefs,
    own_names,
    parse_accounts,
    parse_buddies,
    resolve,
    title_is_proof,
    typed,
)
from bridge.errors import BridgeError

ACCOUNT = Account("alice@localhost/pidgin", "prpl-jabber", "Alice", enabled=True, error=None)
BOB = Contact("bob@localhost", ("Bob",))
BOBBY = Contact("bobby@localhost", ("Bobby",))


def blist(*contacts: str) -> str:
    return f"<purple><blist><group>{''.join(contacts)}</group></blist></purple>"


def person(*buddies: str, alias: str = "") -> str:
    named = f" alias='{alias}'" if alias else ""
    return f"<contact{named}>{''.join(buddies)}</contact>"


def buddy(name: str, alias: str = "", account: str = "alice@localhost/pidgin") -> str:
    named = f"<alias>{escape(alias)}</alias>" if alias else ""
    return f"<buddy account='{account}' proto='prpl-jabber'><name>{name}</name>{named}</buddy>"


def code(error: pytest.ExceptionInfo[BridgeError]) -> str:
    return error.value.code


# --- accounts


def test_account_is_enabled_by_the_setting_of_pidgins_own_interface():
    text = """<account><account><protocol>prpl-jabber</protocol><name>A@Host/x</name>
    <settings ui='other'><setting name='auto-login'>1</setting></settings>
    <settings ui='gtk-gaim'><setting name='auto-login'>0</setting></settings>
    <current_error><type>2</type><description>Incorrect password</description></current_error>
    </account></account>"""
    [account] = parse_accounts(text)
    assert (account.jid, account.enabled, account.password) == ("a@host", False, False)
    assert account.error == "Incorrect password"


def test_empty_error_is_none():
    [account] = parse_accounts(
        "<account><account><name>a@h</name><password>x</password><current_error/></account></account>"
    )
    assert account.error is None
    assert account.password


def test_half_written_file_is_an_error_and_no_empty_list():
    with pytest.raises(ValueError, match=r"accounts\.xml is not readable"):
        parse_accounts("<account><account>")
    with pytest.raises(ValueError, match=r"blist\.xml is not readable"):
        parse_buddies("", ACCOUNT)


# --- buddies


def test_buddies_of_other_accounts_are_not_contacts():
    text = blist(
        person(buddy("bob@localhost", "Bob")),
        person(buddy("eve@localhost", "Eve", account="other@localhost/")),
    )
    assert parse_buddies(text, ACCOUNT) == [BOB]


def test_one_address_in_two_groups_is_one_contact_with_both_names():
    text = blist(person(buddy("b@h", "B")), person(buddy("b@h", "Bee")))
    [contact] = parse_buddies(text, ACCOUNT)
    assert contact.aliases == ("B", "Bee")
    assert contact.title is None
    assert resolve([contact], "Bee") is contact


def test_name_of_the_contact_counts_where_the_buddy_has_none():
    [contact] = parse_buddies(blist(person(buddy("b@h"), alias="Bee")), ACCOUNT)
    assert contact.aliases == ("Bee",)


def test_merged_addresses_are_refused_since_one_window_serves_both():
    contacts = parse_buddies(blist(person(buddy("b1@h", "B"), buddy("b2@h", "B2"))), ACCOUNT)
    with pytest.raises(BridgeError) as error:
        resolve(contacts, "b1@h")
    assert code(error) == "UNSUPPORTED_BY_APP"


def test_a_name_that_begins_another_means_itself_alone():
    assert resolve([BOBBY, BOB], "Bob") is BOB
    assert resolve([BOBBY, BOB], "bobby@localhost") is BOBBY


@pytest.mark.parametrize("to", ["bob", "Bo", "Bob ", "bob@localhost/x", "BOB", "B.*"])
def test_nearly_is_not_found(to: str):
    with pytest.raises(BridgeError) as error:
        resolve([BOB, BOBBY], to)
    assert code(error) == "CONTACT_NOT_FOUND"
    assert error.value.executed is False


def test_namesakes_are_candidates_and_an_address_decides():
    twins = [Contact("t1@h", ("T",)), Contact("t2@h", ("T",))]
    with pytest.raises(BridgeError) as error:
        resolve(twins, "T")
    assert code(error) == "AMBIGUOUS_CONTACT"
    assert [c["id"] for c in error.value.extra["candidates"]] == ["t1@h", "t2@h"]
    assert resolve(twins, "t2@h") is twins[1]


def test_an_alias_that_is_anothers_address_does_not_shadow_it():
    impostor = Contact("eve@h", ("bob@localhost",))
    assert resolve([impostor, BOB], "bob@localhost") is BOB


@pytest.mark.parametrize(
    ("others", "proof"),
    [
        ([BOBBY], True),
        ([Contact("x@h", ("Bob",))], False),
        ([Contact("x@h", ("(Bob)",))], False),
        ([Contact("x@h", ())], False),
        ([Contact("Bob", ("X",))], False),
    ],
)
def test_title_is_proof_only_if_no_other_contact_can_have_it(others: list[Contact], proof: bool):
    assert title_is_proof([BOB, *others], BOB) is proof


def test_bracketed_name_is_no_proof_beside_the_bare_one():
    bracketed = Contact("x@h", ("(Bob)",))
    assert not title_is_proof([BOB, bracketed], bracketed)


# --- texts


@pytest.mark.parametrize(
    "text",
    ["a\rb", "\x00", "\x1b[0m", "\x7f", "\ud800", "\ufffc", "\uffff", " \n\t", "\u200d\u00a0", ""],
)
def test_text_that_cannot_arrive_or_be_seen_is_invalid(text: str):
    with pytest.raises(BridgeError) as error:
        check_text(text)
    assert code(error) == "INVALID_REQUEST"


def test_length_counts_what_goes_over_the_wire():
    check_text("&" * (MAX_STANZA // 5))
    with pytest.raises(BridgeError) as error:
        check_text("&" * (MAX_STANZA // 5 + 1))
    assert code(error) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    "text",
    [
        "www.a.b",
        "see www.a.b",
        "x\nWWW.a",
        "a,ftp.x",
        "http://a.b/?c=&lt;d",
        "a@b&amp;c",
        "irc:a\tb",
    ],
)
def test_link_that_pidgin_would_write_out_is_refused(text: str):
    with pytest.raises(BridgeError) as error:
        check_text(text)
    assert code(error) == "UNSUPPORTED_BY_APP"


@pytest.mark.parametrize(
    "text",
    ["http://a.b/?x=1&y=2", "(www.a.b)", "foo@bar.com", "<b>&amp;</b>", "你好 🎉\n\tx", "www."],
)
def test_text_that_arrives_as_it_is_passes(text: str):
    check_text(text)


def test_leading_slash_is_said_and_not_obeyed():
    assert typed("/quit") == "/say /quit"
    assert typed("a /quit") == "a /quit"


# --- the log

HEADER = "Conversation with bob@localhost at Mon 30 Nov 2026 on alice@localhost/pidgin (jabber)\n"


def record(text: str, name: str = "Alice", time: str = "21:50:32") -> str:
    return f"({time}) {logged(text, name)}\n"


SAID = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), min_size=1)


@given(st.lists(SAID, max_size=4), SAID, st.lists(SAID, max_size=4))
def test_a_text_is_found_among_others(before: list[str], text: str, after: list[str]):
    start = HEADER + "".join(map(record, before))
    log = start + record(text) + "".join(map(record, after))
    assert len(start) in find_said(log, text, {"Alice"})


@given(SAID, SAID)
def test_longer_or_other_text_is_not_it(text: str, other: str):
    if logged(text, "Alice") == logged(other, "Alice"):
        return
    assert find_said(record(other), text, {"Alice"}) == []


@given(SAID)
def test_what_the_contact_says_is_not_what_the_account_said(text: str):
    assert find_said(record(text, "Bob"), text, {"Alice"}) == []


@pytest.mark.parametrize(
    "time", ["21:50:32", "09:50:32 PM", "11/30/26 21:50:29", "下午09时50分32秒"]
)
def test_time_may_be_written_in_any_language(time: str):
    assert find_said(record("hi", time=time), "hi", {"Alice"}) == [0]


def test_first_line_of_a_longer_text_is_not_the_text():
    assert find_said(record("a\nb"), "a", {"Alice"}) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/me waves", "***Alice waves"),
        ("/ME waves", "***Alice waves"),
        ("<b>/me waves", "***Alice <b>waves"),
        (" /me waves", "Alice:  /me waves"),
        ("/me", "Alice: /me"),
        ("tab\tx", "Alice: tab x"),
        ("<b>x</b> &amp;", "Alice: <b>x</b> &amp;"),
    ],
)
def test_forms_that_pidgins_log_gives_a_text(text: str, line: str):
    assert find_said(f"(21:50:33) {line}\n", text, {"Alice"}) == [0]


def test_account_without_alias_is_known_by_its_address():
    names = own_names(Account("Al@h/pidgin", "prpl-jabber", None, enabled=True, error=None))
    assert names == {"Al@h/pidgin", "Al@h", "al@h", "Al"}


# --- positions


def test_only_what_was_said_behind_the_position_counts(tmp_path):
    log = tmp_path / "2026-11-30.215032+0000UTC.txt"
    log.write_text(HEADER + record("again"))
    position = log_position(tmp_path)
    names = frozenset({"Alice"})
    assert said_since(tmp_path, position, "again", names) is None
    with log.open("a") as more:
        more.write(record("again"))
    assert said_since(tmp_path, position, "again", names) is not None


def test_a_conversations_first_message_makes_the_file(tmp_path):
    folder = tmp_path / "never-talked"
    position = log_position(folder)
    assert said_since(folder, position, "hi", frozenset({"Alice"})) is None
    folder.mkdir()
    (folder / "new.txt").write_text(HEADER + record("hi"))
    said = said_since(folder, position, "hi", frozenset({"Alice"}))
    assert said is not None
    assert said.id == f"new:{len(HEADER)}"


def test_old_files_beyond_those_noted_do_not_count(tmp_path):
    for number in range(30):
        (tmp_path / f"{number:02}.txt").write_text(HEADER + record("old"))
    position = log_position(tmp_path)
    assert len(position["sizes"]) < 30
    assert said_since(tmp_path, position, "old", frozenset({"Alice"})) is None


# --- preferences


def value(text: str, path: str) -> str | None:
    node: ET.Element | None = ET.fromstring(text)
    for name in path.split("/"):
        assert node is not None
        node = next((c for c in node if c.get("name") == name), None)
    return None if node is None else node.get("value")


@pytest.mark.parametrize("old", [None, "", "<pref", "<other/>"])
def test_missing_or_broken_preferences_are_begun_anew(old: str | None):
    text = merge_prefs(old)
    assert {path: value(text, path) for path in PREFS} == {p: v for p, (_, v) in PREFS.items()}


def test_other_preferences_stay_and_merging_twice_changes_nothing():
    old = (
        "<pref version='1' name='/'><pref name='pidgin'><pref name='docklet'>"
        "<pref name='show' type='string' value='always'/><pref name='blink' type='bool' value='1'/>"
        "</pref></pref></pref>"
    )
    text = merge_prefs(old)
    assert value(text, "pidgin/docklet/show") == "never"
    assert value(text, "pidgin/docklet/blink") == "1"
    assert merge_prefs(text) == text
