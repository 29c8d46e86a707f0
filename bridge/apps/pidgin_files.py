"""What Pidgin's own files say: accounts, buddies, preferences and text logs. Pure functions.

Everything here takes text and returns values; reading the files is `bridge.apps.pidgin_disk`.
"""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.errors import BridgeError

PROTOCOL = "prpl-jabber"
UI_SETTINGS = "gtk-gaim"
MAX_STANZA = 200_000
"""Bytes of a text as it goes over the wire; servers commonly end a stream above 256 KiB."""

PREFS: Mapping[str, tuple[str, str]] = {
    "pidgin/docklet/show": ("string", "never"),
    "pidgin/blist/list_visible": ("bool", "1"),
    "pidgin/blist/show_offline_buddies": ("bool", "1"),
    "pidgin/conversations/tabs": ("bool", "0"),
    "pidgin/conversations/spellcheck": ("bool", "0"),
    "pidgin/conversations/escape_closes": ("bool", "0"),
    "pidgin/conversations/show_formatting_toolbar": ("bool", "0"),
    "pidgin/conversations/im/hide_new": ("string", "never"),
    "pidgin/sound/method": ("string", "none"),
    "purple/logging/log_ims": ("bool", "1"),
    "purple/logging/log_system": ("bool", "1"),
    "purple/logging/format": ("string", "txt"),
    "purple/away/auto_reply": ("string", "never"),
    "purple/away/away_when_idle": ("bool", "0"),
}
"""Preferences the adapter relies on: path without the root, (type, value).

Windows instead of tabs make a title mean one contact; no docklet keeps the buddy list a window;
text logs are how a send is verified, and the system log is open exactly while signed in.
"""

GTKRC = 'gtk-cursor-blink = 0\ngtk-key-theme-name = "Default"\n'
"""Pidgin reads `gtkrc-2.0` of its folder; a caret that does not blink makes pictures comparable."""


def bare(jid: str) -> str:
    """The address without its resource, in the case that Pidgin normalises to."""
    return jid.partition("/")[0].lower()


@dataclass(frozen=True, slots=True)
class Account:
    """One account of accounts.xml. `enabled` is Pidgin's tick in its account list."""

    name: str
    protocol: str
    alias: str | None
    enabled: bool
    error: str | None
    password: bool = True
    """Whether the password is stored; else Pidgin asks a person for it."""

    @property
    def jid(self) -> str:
        """The account's address."""
        return bare(self.name)


@dataclass(frozen=True, slots=True)
class Contact:
    """One address of the buddy list and every name that it is known by there."""

    jid: str
    aliases: tuple[str, ...]
    shared: bool = False
    """Merged with another address into one contact: one window then serves both."""

    @property
    def title(self) -> str | None:
        """The title of its conversation window; None when the files do not tell it."""
        return self.aliases[0] if len(self.aliases) == 1 else None

    def matches(self, name: str) -> bool:
        """Whether `name` is exactly its address or one of its names."""
        return name == self.jid or name in self.aliases


def _parse(text: str, what: str) -> ET.Element:
    try:
        return ET.fromstring(text)
    except ET.ParseError as error:
        raise ValueError(f"{what} is not readable: {error}") from error


def parse_accounts(text: str) -> list[Account]:
    """The accounts of accounts.xml. Raises ValueError when it is no XML."""
    return [_account(node) for node in _parse(text, "accounts.xml").iterfind("account")]


def _account(node: ET.Element) -> Account:
    enabled = any(
        setting.get("name") == "auto-login" and (setting.text or "").strip() == "1"
        for settings in node.iterfind("settings")
        if settings.get("ui") == UI_SETTINGS
        for setting in settings.iterfind("setting")
    )
    problem = node.find("current_error")
    said = None
    if problem is not None and len(problem):
        said = (problem.findtext("description") or problem.findtext("type") or "").strip() or None
    return Account(
        name=(node.findtext("name") or "").strip(),
        protocol=(node.findtext("protocol") or "").strip(),
        alias=node.findtext("alias") or None,
        enabled=enabled,
        error=said,
        password=bool(node.findtext("password")),
    )


def parse_buddies(text: str, account: Account) -> list[Contact]:
    """The contacts of `account` in blist.xml, one per address. ValueError when it is no XML."""
    aliases: dict[str, list[str]] = {}
    merged: set[str] = set()
    for person in _parse(text, "blist.xml").iterfind("blist/group/contact"):
        jids = set()
        for buddy in person.iterfind("buddy"):
            jid = bare((buddy.findtext("name") or "").strip())
            jids.add(jid)
            if (
                buddy.get("proto") != account.protocol
                or bare(buddy.get("account", "")) != account.jid
            ):
                continue
            names = aliases.setdefault(jid, [])
            alias = buddy.findtext("alias") or person.get("alias")
            if alias and alias not in names:
                names.append(alias)
        if len(jids) > 1:
            merged |= jids
    return [Contact(jid, tuple(names), jid in merged) for jid, names in aliases.items() if jid]


def resolve(contacts: Sequence[Contact], to: str) -> Contact:
    """The one contact that `to` names exactly: its address, else an alias.

    Raises BridgeError CONTACT_NOT_FOUND, AMBIGUOUS_CONTACT (with candidates), or
    UNSUPPORTED_BY_APP for a contact that Pidgin merged from several addresses.
    """
    found = [c for c in contacts if c.jid == to] or [c for c in contacts if c.matches(to)]
    if not found:
        raise BridgeError(
            "CONTACT_NOT_FOUND", f"no buddy has exactly the name {to!r}", executed=False
        )
    if len(found) > 1:
        raise BridgeError(
            "AMBIGUOUS_CONTACT",
            f"{len(found)} buddies have the name {to!r}; use an address",
            executed=False,
            extra={"candidates": [{"id": c.jid, "name": to} for c in found]},
        )
    if found[0].shared:
        raise BridgeError(
            "UNSUPPORTED_BY_APP",
            "Pidgin merged several addresses into this contact; expand it and take them apart",
            executed=False,
        )
    return found[0]


def title_is_proof(contacts: Iterable[Contact], target: Contact) -> bool:
    """Whether a window with the target's title can only be the target's.

    Not so when another buddy has the same name (or the one in brackets, which Pidgin shows for
    it when offline), nor while some buddy has no name of its own here: the server may name it.
    """
    if target.title is None:
        return False
    taken = {target.title, f"({target.title})"}
    if target.title.startswith("(") and target.title.endswith(")"):
        taken.add(target.title[1:-1])
    others = [contact for contact in contacts if contact.jid != target.jid]
    return all(o.aliases and o.jid not in taken and not taken & set(o.aliases) for o in others)


def own_names(account: Account) -> frozenset[str]:
    """The names under which Pidgin may log what this account says."""
    if account.alias:
        return frozenset({account.alias})
    plain = account.name.partition("/")[0]
    return frozenset({account.name, plain, account.jid, plain.partition("@")[0]})


_CARRIED = re.compile("[\t\n\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffb\ufffd\U00010000-\U0010ffff]*")
"""All that XML allows, without the control characters that Pidgin rewrites and the widget's
own placeholder."""

_ESCAPED = {"&": 5, "<": 4, ">": 4, '"': 6, "'": 6}

_REWRITTEN = re.compile(
    r"(?:^|[\s,])(?:www|ftp)\.[^ \n]"  # sent as "www.a.b <http://www.a.b>"
    r"|\S*(?:[a-z]:|@)[^ \n]*(?:&#?\w+;|\t)",  # a link with an entity or a tab in it, likewise
    re.IGNORECASE,
)
"""What Pidgin makes a link of and sends with the link's address behind it."""


def check_text(text: str) -> None:
    """Refuse a text that would not arrive exactly, or that the entry cannot show.

    Raises BridgeError INVALID_REQUEST (a character that is not carried, nothing visible, too
    long) or UNSUPPORTED_BY_APP (Pidgin would send another text).
    """
    if not _CARRIED.fullmatch(text):
        raise _refused("the text holds a character that XMPP or Pidgin does not carry")
    if all(unicodedata.category(character)[0] in "CZ" for character in text):
        raise _refused("the text shows nothing")
    size = len(text.encode()) + sum(text.count(c) * (n - 1) for c, n in _ESCAPED.items())
    if size > MAX_STANZA:
        raise _refused(f"the text takes {size} bytes on the wire; at most {MAX_STANZA} pass")
    changed = _REWRITTEN.search(text)
    if changed:
        raise BridgeError(
            "UNSUPPORTED_BY_APP",
            f"Pidgin would send {changed[0].strip()!r}… with a link behind it; write the link out",
            executed=False,
        )


def _refused(detail: str) -> BridgeError:
    return BridgeError("INVALID_REQUEST", detail, executed=False)


def typed(text: str) -> str:
    """What to put into the entry so that Pidgin sends `text`; a leading / would be a command."""
    return f"/say {text}" if text.startswith("/") else text


_DEED = re.compile(r"((?:<[^>]*>)*)/me ", re.IGNORECASE)
"""The start of a text that Pidgin tells in the third person; it looks behind what seems a tag."""


def logged(text: str, name: str) -> str:
    """How Pidgin's text log writes `text` said by `name`, without the time in front."""
    plain = text.replace("\t", " ")
    deed = _DEED.match(plain)
    return f"***{name} {deed[1]}{plain[deed.end() :]}" if deed else f"{name}: {plain}"


_RECORD = r"^\([^()\n]{1,60}\) "


def find_said(log: str, text: str, names: Iterable[str]) -> list[int]:
    """Where in a piece of a text log one of `names` says exactly `text`: character offsets.

    The piece has to begin at a record. A record ends at the next one or at the end.
    """
    forms = "|".join(re.escape(logged(text, name)) for name in sorted(names))
    pattern = rf"{_RECORD}(?:{forms})\n(?={_RECORD}|\Z)"
    return [match.start() for match in re.finditer(pattern, log, re.MULTILINE)]


def merge_prefs(text: str | None) -> str:
    """prefs.xml with `PREFS` set and all else kept; a missing or broken file is begun anew."""
    try:
        root = ET.fromstring(text) if text else None
    except ET.ParseError:
        root = None
    if root is None or root.tag != "pref":
        root = ET.Element("pref", {"version": "1", "name": "/"})
    for path, (kind, value) in PREFS.items():
        node = root
        for name in path.split("/"):
            child = next((c for c in node.iterfind("pref") if c.get("name") == name), None)
            node = ET.SubElement(node, "pref", {"name": name}) if child is None else child
        node.set("type", kind)
        node.set("value", value)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='UTF-8' ?>\n\n{ET.tostring(root, encoding='unicode')}\n"
