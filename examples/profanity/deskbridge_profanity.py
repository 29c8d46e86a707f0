"""An app adapter for Profanity, an XMPP client in a terminal: texts only, one file.

Written as the example of docs/adding-an-app.md; the numbers in brackets are its steps. What it
knows of the app:

- the terminal's title is `Profanity - alice@example.org/…` while it is connected [2];
- `/msg ADDRESS TEXT` sends to exactly this address, whatever chat is shown [3];
- each message lands in an SQLite file of Profanity's own, after it has left [4].
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import trio

from bridge.apps.base import AppSettings, Found, LaunchSpec, Reading, Verdict
from bridge.errors import BridgeError
from bridge.flow import Flow, FlowContext, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import Kind, SendText
from bridge.model import Json, LoginState
from ui_backends import vision
from ui_backends.base import Window

TITLE = "Profanity"
PASTE = ("shift", "Insert")

PROFRC = """\
[ui]
wintitle.show=true
splash=false
beep=false
flash=false
[notifications]
message=false
[connection]
account={account}
"""


class ProfanityAdapter:
    """See `bridge.apps.base.Adapter`."""

    name = "profanity"
    durable_history = False  # its history is written after a message has left
    kinds: Mapping[str, Kind] = {}

    def __init__(self, settings: AppSettings) -> None:
        self.folder = settings.state_dir / "profanity"
        self.account = settings.env.get("DESKBRIDGE_PROFANITY_ACCOUNT", "")
        self.flows: Mapping[str, Flow[Any]] = {"send_text": SendTextFlow(self.folder)}

    def launch(self) -> LaunchSpec:
        """[1] Profanity in an xterm that pastes the clipboard, on a folder of its own."""
        terminal = ("xterm", "-u8", "-geometry", "120x40")
        return LaunchSpec(
            (*terminal, "-xrm", "XTerm*selectToClipboard: true", "-e", "profanity"),
            env={
                "XDG_CONFIG_HOME": str(self.folder / "config"),
                "XDG_DATA_HOME": str(self.folder / "data"),
            },
        )

    def prepare(self) -> None:
        """[1] The preferences that the rest relies on; accounts are the person's own."""
        folder = self.folder / "config" / "profanity"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "profrc").write_text(PROFRC.format(account=self.account), "utf-8")

    async def probe(self, eyes: Eyes) -> Reading:
        """[2] The title says who is connected."""
        window = await find_window(eyes)
        if window is None:
            return Reading(LoginState.UNKNOWN, evidence={"why": "no window"})
        account = account_of(window.title)
        state = LoginState.LOGGED_IN if account else LoginState.OFFLINE
        return Reading(state, account, {"title": window.title})

    async def clean_screen(self, hands: Hands) -> None:
        """[5] An empty command line."""
        window = await find_window(hands)
        if window is None:
            raise BridgeError("APP_NOT_READY", "Profanity shows no window", executed=False)
        await hands.activate(window.id)
        await hands.chord("ctrl", "u", window=window.id)


async def find_window(eyes: Eyes) -> Window | None:
    """Profanity's terminal, by class and title; None while there is none."""
    found = [
        w
        for w in await eyes.windows()
        if w.viewable and w.wm_class == ("xterm", "XTerm") and w.title.startswith(TITLE)
    ]
    return found[0] if len(found) == 1 else None


def account_of(title: str) -> str | None:
    """`a@b` of `Profanity (3) - a@b/resource`; None while it is not connected."""
    _, dash, rest = title.partition(" - ")
    return rest.partition("/")[0] or None if dash else None


def check(params: SendText) -> None:
    """Refuse what this way of sending would change. Raises BridgeError INVALID_REQUEST."""
    user, at, host = params.to.partition("@")
    if not (user and at and host) or any(c.isspace() or c in "\"'/" for c in params.to):
        raise BridgeError(
            "CONTACT_NOT_FOUND", f"{params.to!r} is no address; one is bob@example.org"
        )
    text = params.text
    if text != text.strip() or text.startswith('"') or not text.isprintable():
        raise BridgeError(
            "INVALID_REQUEST",
            "text: in Profanity it is one line without spaces around it and no quote in front",
        )


class SendTextFlow:
    """The kind `send_text`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def run(self, ctx: FlowContext[SendText]) -> Mapping[str, Json]:
        """[3] One command line, pasted and looked at; [4] the history behind the mark."""
        check(ctx.params)
        hands, to, text = ctx.hands, ctx.params.to, ctx.params.text
        window = await self._connected(hands, ctx.owner)
        await hands.activate(window.id)
        await hands.chord("ctrl", "u", window=window.id)
        empty = await hands.capture(window.id)
        await hands.paste_text(window.id, f"/msg {to} {text}", chord=PASTE)

        async def shown() -> bool | None:
            return vision.changed(empty, await hands.capture(window.id)) or None

        await hands.until("the text on the command line", shown, timeout=3)
        history = self._history(str(ctx.owner or account_of(window.title)))
        mark: dict[str, Json] = {
            "history": str(history),
            "position": await trio.to_thread.run_sync(last_id, history),
            "to": to,
        }

        async def recheck() -> None:
            seen = await self._connected(hands, ctx.owner)
            if seen.id != window.id or await hands.active_window() != window.id:
                raise BridgeError("FOCUS_LOST", "the terminal lost the focus", executed=False)

        await ctx.commit(mark, recheck=recheck, act=partial(_enter, hands, window))
        message = await hands.until(
            "the message in Profanity's history", partial(_sent, mark, text), timeout=5
        )
        return {"message": message, "to": to}

    async def verify(self, ctx: VerifyContext[SendText]) -> Verdict:
        """[4] Done when the history says so; its silence proves nothing, so a person decides."""
        message = await _sent(ctx.mark, ctx.params.text)
        if message is None:
            return Verdict(Found.UNKNOWN, evidence={"history": ctx.mark["history"]})
        return Verdict(Found.DONE, {"message": message, "to": ctx.mark["to"]})

    async def _connected(self, eyes: Eyes, owner: str | None) -> Window:
        """The window, connected as `owner`. Raises BridgeError."""
        window = await find_window(eyes)
        account = None if window is None else account_of(window.title)
        if window is None or account is None:
            raise BridgeError("APP_NOT_READY", "Profanity is not connected", executed=False)
        if owner not in {None, account}:
            raise BridgeError("NOT_LOGGED_IN", "another account is signed in", executed=False)
        return window

    def _history(self, account: str) -> Path:
        folder = self._folder / "data" / "profanity" / "database"
        return folder / account.replace("@", "_at_") / "chatlog.db"


async def _enter(hands: Hands, window: Window) -> None:
    await hands.chord("Return", window=window.id)


async def _sent(mark: Mapping[str, Json], text: str) -> str | None:
    """The message's id in the history behind the mark; None when it is not there (yet)."""
    look = partial(message_after, Path(mark["history"]), mark["position"], mark["to"], text)
    return await trio.to_thread.run_sync(look)


def last_id(history: Path) -> int:
    """The newest row of the history, 0 while it is empty. Blocking."""
    rows = _rows(history, "SELECT max(id) FROM ChatLogs", ())
    return int(rows[0][0] or 0) if rows else 0


def message_after(history: Path, position: int, to: str, text: str) -> str | None:
    """The id of `text` to `to` behind `position`. Blocking."""
    query = (
        "SELECT stanza_id FROM ChatLogs WHERE id > ? AND lower(to_jid) = lower(?) AND message = ?"
    )
    rows = _rows(history, query, (position, to, text))
    return str(rows[0][0]) if rows else None


def _rows(history: Path, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    if not history.exists():
        return []
    with closing(sqlite3.connect(f"file:{history}?mode=ro", uri=True, timeout=2.0)) as database:
        return database.execute(query, values).fetchall()
