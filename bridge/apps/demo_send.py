"""Sends a text in the demo app; proven by the app's journal, its message history."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import trio
from PIL import Image

from bridge.apps import demo_screen as screen
from bridge.apps.base import Found, Verdict
from bridge.apps.demo_names import Names
from bridge.apps.demo_view import Named, entry_region
from bridge.demoapp import journal, titles
from bridge.errors import BridgeError
from bridge.flow import FlowContext, RetryLater, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import SendText
from bridge.model import Json
from ui_backends import vision
from ui_backends.base import Ping, WindowId

JOURNAL_PATIENCE = 5.0
"""Seconds after Return in which the journal has to show the message."""


class SendTextFlow:
    """The kind `send_text` in the demo app."""

    def __init__(self, state_dir: Path, names: Names) -> None:
        self._state_dir = state_dir
        self._names = names

    async def run(self, ctx: FlowContext[SendText]) -> Mapping[str, Json]:
        """Send it. The result is `{"message": its id, "to": the account id, "verified": true}`."""
        hands, text = ctx.hands, ctx.params.text
        check_text(text)
        main, _ = await screen.main_window(hands)
        await hands.activate(main.id)
        _, title = await screen.main_window(hands, ctx.owner)
        target = await screen.open_chat(hands, main.id, title, ctx.params.to, self._names)
        blank = await screen.empty_entry(hands, main.id)
        await hands.paste_text(main.id, text)
        draft = await screen.settled_draft(hands, main.id, blank)
        mark: dict[str, Json] = {
            "position": await trio.to_thread.run_sync(journal.size, self._state_dir),
            "to": target.id,
            "window": main.id,
            "pid": main.pid,
            "draft": await ctx.save("draft", draft),
        }
        await ctx.commit(
            mark,
            recheck=partial(recheck, hands, main.id, target, draft, ctx.owner),
            act=partial(hands.chord, "Return", window=main.id),
        )
        return await hands.until(
            "the message in the app's history",
            partial(self._sent_or_refused, hands, mark, text),
            timeout=JOURNAL_PATIENCE,
        )

    async def _sent_or_refused(
        self, eyes: Eyes, mark: Mapping[str, Json], text: str
    ) -> Mapping[str, Json] | None:
        """The result, once the journal has the message.

        A dialog instead means that the app took the key for something else. What is raised here
        lies behind the commit point: `verify` still decides whether anything was sent, and only
        when it was not does the account cool down and the action try again.
        """
        dialogs = (await screen.look(eyes)).dialogs
        result = await self._sent(mark, text)
        if result is not None:
            return result
        if any(dialog.title == titles.TOO_FREQUENT for dialog in dialogs):
            raise RetryLater("the app says that this is too frequent", queue=True, counts=False)
        if dialogs:
            raise BridgeError("FOCUS_LOST", f"the window {dialogs[0].title!r} took the Return")
        return None

    async def _sent(self, mark: Mapping[str, Json], text: str) -> Mapping[str, Json] | None:
        return await trio.to_thread.run_sync(sent_since, self._state_dir, mark, text)

    async def verify(self, ctx: VerifyContext[SendText]) -> Verdict:
        """Done, if the journal says so; not done, if the app has ended or still shows the draft.

        The journal is on disk before a message leaves. An answered ping means that the app has
        dealt with the Return, which came before it, so the journal is read after the ping.
        """
        mark, text = ctx.mark, ctx.params.text
        alive = not ctx.app_ended and await _answers(ctx.eyes, mark["window"])
        result = await self._sent(mark, text)
        evidence: dict[str, Json] = {
            "app_ended": ctx.app_ended,
            "history_from": mark["position"],
            "in_history": result is not None,
            "draft_before": mark["draft"],
        }
        if result is not None:
            return Verdict(Found.DONE, result, evidence)
        if ctx.app_ended:
            return Verdict(Found.NOT_DONE, evidence=evidence)
        still = alive and await _shows_draft(ctx)
        evidence |= {"answered": alive, "draft_still_there": still}
        if still and await self._sent(mark, text) is None:
            return Verdict(Found.NOT_DONE, evidence=evidence)
        return Verdict(Found.UNKNOWN, evidence=evidence)


def check_text(text: str) -> None:
    """INVALID_REQUEST for a text that cannot be seen in the entry, or that Tk cannot hold."""
    if all(unicodedata.category(sign)[0] in "ZC" for sign in text):
        raise BridgeError("INVALID_REQUEST", "the text has nothing to see in it", executed=False)
    if "\0" in text:
        raise BridgeError("INVALID_REQUEST", "the text has a NUL character", executed=False)


def sent_since(state_dir: Path, mark: Mapping[str, Json], text: str) -> Mapping[str, Json] | None:
    """The result for this text to this contact, if the journal has it after the mark."""
    for entry in journal.entries(state_dir, mark["position"]):
        if (entry.get("effect"), entry.get("contact"), entry.get("text")) == (
            "message_sent",
            mark["to"],
            text,
        ):
            return {"message": entry["message"], "to": mark["to"], "verified": True}
    return None


async def recheck(
    hands: Hands, main: WindowId, target: Named, draft: Image.Image, owner: str | None
) -> None:
    """Look again, right before Return: account, connection, chat, draft, and last the focus."""
    _, title = await screen.main_window(hands, owner)
    if title.chat != target:
        raise BridgeError("VERIFY_FAILED", "another chat is open", executed=False)
    if vision.changed(draft, await screen.entry_picture(hands, main)):
        screen.undisturbed(await screen.look(hands))
        raise BridgeError("VERIFY_FAILED", "the draft changed", executed=False)
    await screen.main_window(hands)
    await screen.require_focus(hands, main)


async def _answers(eyes: Eyes, window: WindowId) -> bool:
    try:
        return await eyes.ping(window, timeout=2.0) is Ping.ALIVE
    except BridgeError:
        return False


async def _shows_draft(ctx: VerifyContext[SendText]) -> bool:
    """Whether the window that was pressed, and no other, shows the same entry as before."""
    draft = await ctx.load(ctx.mark["draft"])
    if draft is None:
        return False
    try:
        window = await ctx.eyes.window(ctx.mark["window"])
        if window.pid != ctx.mark["pid"]:
            return False
        picture = await ctx.eyes.capture(window.id, entry_region(window))
    except BridgeError:
        return False
    return not vision.changed(draft, picture)
