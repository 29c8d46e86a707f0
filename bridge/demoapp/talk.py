"""What can be done in a chat and with contacts: its history, files, remarks, new contacts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from bridge.demoapp import titles
from bridge.demoapp.contacts import SEPARATOR, Contact
from bridge.demoapp.form import Form
from bridge.demoapp.memory import Memory, Message, new_id
from bridge.demoapp.panels import Surroundings
from bridge.demoapp.rows_panel import Line, RowsPanel
from bridge.demoapp.search_state import Search


class Doer(Surroundings, Protocol):
    """What the panels ask of the app."""

    memory: Memory
    revoke_seconds: float
    """How long a message can be taken back."""

    def act(self, effect: str, **facts: Any) -> bool:
        """Have it happen: into the journal, then on the screen. False when a fault prevents it."""
        ...

    def refuse(self, why: str) -> None:
        """Say why something cannot be done."""
        ...


def recipient(app: Doer, state: Search) -> Contact | None:
    """The contact that a form's search has come to; says so when there is none."""
    if state.highlighted is None:
        app.refuse("choose a contact")
    return state.highlighted


def history(app: Doer, parent: Any, contact: Contact) -> None:
    """The messages of a chat, newest first, each to be revoked or forwarded."""

    def line(message: Message) -> Line:
        state = "revoked" if message.revoked else "sent" if message.mine else "received"
        when = time.strftime("%H:%M", time.localtime(message.ts / 1000))
        words = " ".join(message.text[:200].split())
        return Line(message.id, f"{message.id} {state}", f"{when}  {words}")

    def lines() -> list[Line]:
        return [line(message) for message in reversed(app.memory.chat(contact.id))]

    def chosen(message_id: str) -> Message:
        return next(m for m in app.memory.chat(contact.id) if m.id == message_id)

    panel = RowsPanel(
        parent, app, titles.HISTORY, contact.label, lines=lines,
        keys={
            "<F8>": ("Revoke", lambda which: _revoke(app, panel, contact, chosen(which))),
            "<F9>": ("Forward…", lambda which: _forward(app, panel, contact, chosen(which))),
        },
    )  # fmt: skip


def _too_late(app: Doer, message: Message) -> str | None:
    if message.revoked:
        return "revoked already"
    if not message.mine:
        return "somebody else wrote it"
    age = time.time() - message.ts / 1000
    return "too late" if age > app.revoke_seconds else None


def _revoke(app: Doer, panel: RowsPanel, contact: Contact, message: Message) -> None:
    def submit(_form: Form) -> bool:
        why = _too_late(app, message)
        if why is not None:
            app.refuse(why)
            return False
        done = app.act(
            "message_revoked",
            to=app.memory.handle(contact),
            contact=contact.id,
            message=message.id,
        )
        if done:
            panel.close()
        return done

    why = _too_late(app, message)
    if why is not None:
        app.refuse(why)
        return
    form = Form(
        panel.window, app, titles.REVOKE, message.id, contact.label, button="Revoke", submit=submit
    )
    form.note(f"Take back “{message.text[:200]}”?")
    form.open()


def _forward(app: Doer, panel: RowsPanel, contact: Contact, message: Message) -> None:
    def submit(_form: Form) -> bool:
        target = recipient(app, to())
        done = target is not None and app.act(
            "message_forwarded",
            **{"from": app.memory.handle(contact)},
            message=message.id,
            to=app.memory.handle(target),
            contact=target.id,
            forwarded=new_id("m"),
            text=message.text,
        )
        if done:
            panel.close()
        return done

    if message.revoked:
        app.refuse("revoked already")
        return
    form = Form(
        panel.window, app, titles.FORWARD, message.id, contact.label,
        button="Forward", submit=submit,
    )  # fmt: skip
    to = form.contact("to", lambda: app.memory.contacts)
    form.open()


def send_file(app: Doer, parent: Any, contact: Contact) -> None:
    """A file for the open chat."""

    def submit(_form: Form) -> bool:
        chosen = read()
        if not chosen or len(chosen) != 1:
            app.refuse("choose one file")
            return False
        return app.act(
            "file_sent",
            to=app.memory.handle(contact),
            contact=contact.id,
            name=chosen[0].name,
            size=chosen[0].size,
            sha256=chosen[0].sha256,
            message=new_id("m"),
        )

    form = Form(parent, app, titles.SEND_FILE, contact.label, button="Send", submit=submit)
    read = form.files("file")
    form.open()


def remark(app: Doer, parent: Any, contact: Contact) -> None:
    """What the open chat's contact is to be called."""

    def submit(_form: Form) -> bool:
        if SEPARATOR in read():
            app.refuse("a remark cannot have this in it")
            return False
        return app.act(
            "remark_set",
            to=app.memory.handle(contact),
            contact=contact.id,
            name=contact.name,
            remark=read(),
        )

    form = Form(parent, app, titles.REMARK, contact.label, button="Save", submit=submit)
    read = form.line("remark")
    form.open()


def add_friend(app: Doer, parent: Any) -> None:
    """A new contact by account."""

    def say(account: str) -> str:
        if not account:
            return "account"
        known, stranger = app.memory.contact(account), app.memory.stranger(account)
        if known is not None:
            return f"account: a contact already, {known.label}"
        if stranger is not None:
            return f"account: {stranger.label}"
        return titles.text_part("account: nobody called", account)

    def submit(_form: Form) -> bool:
        stranger = app.memory.stranger(account())
        if stranger is None:
            app.refuse("choose an account that is no contact yet")
            return False
        return app.act(
            "friend_added",
            to=stranger.name,
            contact=stranger.id,
            name=stranger.name,
            greeting=greeting(),
        )

    form = Form(parent, app, titles.ADD_FRIEND, button="Add", submit=submit)
    account = form.line("account", say)
    greeting = form.text("greeting")
    form.open()


def requests(app: Doer, parent: Any) -> None:
    """The friend requests that have arrived."""

    def lines() -> list[Line]:
        return [
            Line(
                one.id,
                f"{one.id} {one.name} [{one.contact}] {'accepted' if one.accepted else 'waiting'}",
                f"{one.name} ({one.contact})  {one.greeting[:100]}",
            )
            for one in app.memory.requests
        ]

    def accept(request_id: str) -> None:
        request = next(one for one in app.memory.requests if one.id == request_id)
        if request.accepted:
            app.refuse("accepted already")
            return
        if app.act(
            "friend_accepted", request=request.id, contact=request.contact, name=request.name
        ):
            panel.close()

    accepting: dict[str, tuple[str, Callable[[str], object]]] = {
        "<Control-Return>": ("Accept", accept)
    }
    panel = RowsPanel(parent, app, titles.REQUESTS, lines=lines, keys=accepting)
