"""Sends a text: conversation, empty entry, paste, look, Return; proven by Pidgin's own log."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from PIL import Image

from bridge.apps.base import Found, Verdict
from bridge.apps.pidgin_chats import Chat, Chats
from bridge.apps.pidgin_disk import Said, log_folder, log_position, said_since
from bridge.apps.pidgin_files import Contact, check_text, own_names, resolve, typed
from bridge.apps.pidgin_picture import Entry, find_entry
from bridge.apps.pidgin_view import PidginView, Session, require_focus
from bridge.errors import BridgeError
from bridge.flow import FlowContext, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import SendText
from bridge.model import Json
from ui_backends.base import Ping

LOG_PATIENCE = 5.0
"""Seconds after Return in which the log has to show the text."""


class SendTextFlow:
    """The kind `send_text` in Pidgin."""

    def __init__(self, view: PidginView, chats: Chats) -> None:
        self._view = view
        self._chats = chats

    async def run(self, ctx: FlowContext[SendText]) -> Mapping[str, Json]:
        """Send it. The result is `{"message": its place in the log, "to": the address}`."""
        hands, text = ctx.hands, ctx.params.text
        check_text(text)
        session = await self._view.session(hands)
        if ctx.owner not in {None, session.account.jid}:
            # it changed since this was claimed
            raise BridgeError("NOT_LOGGED_IN", "another account is signed in", executed=False)
        contacts = await self._view.contacts(session.account)
        target = resolve(contacts, ctx.params.to)
        names = _distinct_names(session, target)
        chat = await self._chats.open(hands, session, contacts, target)
        blank = await clear_entry(hands, chat)
        await hands.paste_text(chat.window, typed(text))
        draft = (await settled_draft(hands, chat, blank)).image
        logs = log_folder(self._view.folder, session.account, target.jid)
        position = await self._view.read(partial(log_position, logs))
        mark = {
            "logs": str(logs),
            "position": position,
            "names": sorted(names),
            "to": target.jid,
            "window": chat.window,
            "pid": chat.pid,
            "draft": await ctx.save("draft", draft),
        }
        await ctx.commit(
            mark,
            recheck=partial(self._recheck, hands, session, chat, draft),
            act=partial(hands.chord, "Return", window=chat.window),
        )
        said = await hands.until(
            "the message in Pidgin's log",
            partial(self._said, mark, text),
            timeout=LOG_PATIENCE,
        )
        return _result(said, mark)

    async def _recheck(
        self, hands: Hands, session: Session, chat: Chat, draft: Image.Image
    ) -> None:
        """Look again, right before Return: connection, recipient, draft, focus (twice)."""
        if not await self._view.connected(session):
            raise BridgeError("APP_NOT_READY", "the connection ended", executed=False)
        await require_focus(hands, chat.window)
        if not chat.is_(await hands.window(chat.window)):
            raise BridgeError("VERIFY_FAILED", "the conversation changed", executed=False)
        entry = await see_entry(hands, chat)
        if entry is None or not entry.shows(draft):
            raise BridgeError("VERIFY_FAILED", "the draft changed", executed=False)
        await require_focus(hands, chat.window)

    async def _said(self, mark: Mapping[str, Json], text: str) -> Said | None:
        names = frozenset(mark["names"])
        work = partial(said_since, Path(mark["logs"]), mark["position"], text, names)
        return await self._view.read(work)

    async def verify(self, ctx: VerifyContext[SendText]) -> Verdict:
        """Done, if the log says so; not done, if a living Pidgin still shows the draft.

        The log is written after the message has left, so a Pidgin that has ended proves nothing
        by its silence. The ping comes first: once it is answered, Return has been dealt with and
        the log, if it says anything, says it.
        """
        window: int = ctx.mark["window"]
        answers = [] if ctx.app_ended else [await _ping(ctx.eyes, window)]
        try:
            said = await self._said(ctx.mark, ctx.params.text)
        except OSError as error:
            return Verdict(Found.UNKNOWN, evidence={"log": str(error)})
        evidence: dict[str, Json] = {
            "log": ctx.mark["logs"],
            "app_ended": ctx.app_ended,
            "draft_before": ctx.mark["draft"],
        }
        if said:
            return Verdict(Found.DONE, _result(said, ctx.mark), evidence | {"said": said.id})
        if ctx.app_ended:
            return Verdict(Found.UNKNOWN, evidence=evidence)
        # A second ping, since the answer to the first may have come before the redraw.
        answers.append(await _ping(ctx.eyes, window))
        still = await self._draft_is_there(ctx)
        evidence |= {"pings": answers, "draft_still_there": still}
        if (
            still
            and answers == [Ping.ALIVE.value] * 2
            and not await self._said(ctx.mark, ctx.params.text)
        ):
            return Verdict(Found.NOT_DONE, evidence=evidence)
        return Verdict(Found.UNKNOWN, evidence=evidence)

    async def _draft_is_there(self, ctx: VerifyContext[SendText]) -> bool:
        draft = await ctx.load(ctx.mark["draft"])
        if draft is None:
            return False
        try:
            window = await ctx.eyes.window(ctx.mark["window"])
            if window.pid != ctx.mark["pid"]:
                return False
            entry = find_entry(await ctx.eyes.capture(window.id))
        except BridgeError:
            return False
        return entry is not None and entry.shows(draft)


def _result(said: Said, mark: Mapping[str, Json]) -> Mapping[str, Json]:
    return {"message": said.id, "to": mark["to"]}


def _distinct_names(session: Session, target: Contact) -> frozenset[str]:
    """The account's names in the log. UNSUPPORTED_BY_APP when they are the contact's as well."""
    names = own_names(session.account)
    if names & {target.jid, *target.aliases}:
        raise BridgeError(
            "UNSUPPORTED_BY_APP",
            "the account and the contact have the same name, so Pidgin's log does not tell who "
            "said what; give the account an alias of its own",
            executed=False,
        )
    return names


async def see_entry(eyes: Eyes, chat: Chat) -> Entry | None:
    """The entry as it looks now; None when something hides it."""
    return find_entry(await eyes.capture(chat.window))


async def clear_entry(hands: Hands, chat: Chat) -> Entry:
    """Empty the entry; how it looks then."""
    # A plain key brings the focus into the entry, wherever in the window it was.
    await hands.chord("space", window=chat.window)
    await hands.chord("ctrl", "a", window=chat.window)
    await hands.chord("BackSpace", window=chat.window)

    async def empty() -> Entry | None:
        entry = await see_entry(hands, chat)
        if entry is not None and entry.empty:
            return entry
        await require_focus(hands, chat.window)
        return None

    return await hands.until("an empty entry", empty, timeout=3)


async def settled_draft(hands: Hands, chat: Chat, blank: Entry) -> Entry:
    """The entry once it differs from the empty one, in text or size, and stays as it is."""
    last: Entry | None = None

    async def settled() -> Entry | None:
        nonlocal last
        entry = await see_entry(hands, chat)
        if entry is None or (entry.empty and entry.region == blank.region):
            await require_focus(hands, chat.window)
            return None
        same = last is not None and entry.shows(last.image)
        last = entry
        return entry if same else None

    return await hands.until("the text in the entry", settled, timeout=5)


async def _ping(eyes: Eyes, window: int) -> str:
    try:
        return (await eyes.ping(window, timeout=2.0)).value
    except BridgeError as error:
        return error.code
