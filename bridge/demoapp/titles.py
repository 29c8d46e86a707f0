"""The window titles: all that another program can read off the demo app as text.

`Demo Chat - demo` · `Demo Chat - demo - Alice Smith [alice.smith]` ·
`Demo Chat - demo - search` · `Demo Chat - demo - search 2/3: Alice Smith [alice.smith]` ·
`Demo Chat - demo - search: no hits` · offline: `Demo Chat - demo (offline)…`
"""

from __future__ import annotations

from bridge.demoapp.contacts import Contact

APP = "Demo Chat"
SIGN_IN = f"{APP} - Sign in"
SIGN_OUT = "Sign out?"
TOO_FREQUENT = "Too frequent"
NOTICE = "Notice"
WM_CLASS = "DeskbridgeDemo"


def main_title(account: str, *, offline: bool, chat: Contact | None, search: str | None) -> str:
    """The main window's title; `search` (from `search_part`) hides the open chat."""
    title = f"{APP} - {account}" + (" (offline)" if offline else "")
    if search is not None:
        return f"{title} - {search}"
    return f"{title} - {chat.label}" if chat else title


def search_part(query: str, hits: list[Contact], position: int) -> str:
    """What the title says of a search; `position` counts from 0 and is the highlighted hit."""
    if not query:
        return "search"
    if not hits:
        return "search: no hits"
    return f"search {position + 1}/{len(hits)}: {hits[position].label}"
