"""The window titles: all that another program can read off the demo app as text.

`Demo Chat - demo` · `Demo Chat - demo - Alice Smith [alice.smith]` ·
`Demo Chat - demo - search` · `Demo Chat - demo - search 2/3: Alice Smith [alice.smith]` ·
`Demo Chat - demo - search: no hits` · offline: `Demo Chat - demo (offline)…`

Panels say what they are, what they are about, and what their fields hold: a text by its length
and the start of its SHA-256, a file by its size and the same of its content.
`Chat history - Alice [alice] - find 1/1: m12 sent` · `Remark - Alice [alice] - remark 2:ab…`
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from bridge.demoapp.contacts import Contact

APP = "Demo Chat"
SIGN_IN = f"{APP} - Sign in"
SIGN_OUT = "Sign out?"
TOO_FREQUENT = "Too frequent"
NOTICE = "Notice"
REFUSED = "Not possible"
WM_CLASS = "DeskbridgeDemo"

HISTORY = "Chat history"
REQUESTS = "Friend requests"
MOMENTS = "Moments"
REVOKE = "Revoke message"
FORWARD = "Forward message"
SEND_FILE = "Send file"
REMARK = "Remark"
ADD_FRIEND = "Add friend"
PUBLISH = "New moment"
SHARE = "Share link"
DELETE_MOMENT = "Delete moment"
FORWARD_MOMENT = "Forward moment"
COMMENT = "Comment"

PANELS = frozenset(
    {
        *(HISTORY, REQUESTS, MOMENTS, REVOKE, FORWARD, SEND_FILE, REMARK, ADD_FRIEND),
        *(PUBLISH, SHARE, DELETE_MOMENT, FORWARD_MOMENT, COMMENT),
    }
)
"""Windows that can be worked beside others; every other dialog keeps the keyboard to itself."""


def main_title(account: str, *, offline: bool, chat: Contact | None, search: str | None) -> str:
    """The main window's title; `search` (from `search_part`) hides the open chat."""
    title = f"{APP} - {account}" + (" (offline)" if offline else "")
    if search is not None:
        return f"{title} - {search}"
    return f"{title} - {chat.label}" if chat else title


def search_part(query: str, hits: Sequence[Contact], position: int) -> str:
    """What the title says of a search; `position` counts from 0 and is the highlighted hit."""
    return rows_part("search", query, [hit.label for hit in hits], position)


def rows_part(word: str, query: str, labels: Sequence[str], position: int) -> str:
    """The same of any list that is searched, by the labels of its rows."""
    if not query:
        return word
    if not labels:
        return f"{word}: no hits"
    return f"{word} {position + 1}/{len(labels)}: {labels[position]}"


def panel_title(name: str, *parts: str) -> str:
    """A panel's title from what it says."""
    return " - ".join([name, *parts])


def text_part(name: str, text: str) -> str:
    """A field and what it holds: `text 5:2cf24dba5fb0`."""
    return f"{name} {len(text)}:{_digest(text.encode(errors='surrogatepass'))}"


def files_part(name: str, files: Sequence[tuple[int, str]]) -> str:
    """Chosen files, by size (bytes) and SHA-256 (hex): `images 2 31:0a1b… 40:77cc…`."""
    each = [f"{size}:{sha256[:12]}" for size, sha256 in files]
    return " ".join([name, str(len(files)), *each])


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
