"""Signing in and out of the demo app: showing the code, and the menu's "Sign out…"."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from functools import partial

from PIL import Image

from bridge.apps import demo_screen as screen
from bridge.apps.base import Found, Reading, Verdict
from bridge.apps.demo_signin_view import SignIn, read_sign_in
from bridge.apps.demo_view import View
from bridge.clock import rfc3339
from bridge.demoapp import theme, titles
from bridge.errors import BridgeError
from bridge.flow import FlowContext, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import CaptureQr, Logout
from bridge.model import Json, LoginState
from ui_backends import qr
from ui_backends.base import Window

SETTLE = 8.0
"""Seconds in which a sign-in window that is just changing has to show something certain."""

SIGN_OUT_PATIENCE = 10.0
"""Seconds from the last key until the sign-in window must be there."""

_UNTIL = re.compile(r"[?&]until=(\d{9,11})$")


async def seen(eyes: Eyes, window: Window) -> SignIn:
    """What the sign-in window shows now; nothing certain once it is gone."""
    try:
        return read_sign_in(await eyes.capture(window.id))
    except BridgeError as error:
        if error.code != "WINDOW_NOT_FOUND":
            raise
        # it just made room for the main window; the next look tells
        return SignIn(None, evidence={"window": "gone"})


async def sign_in_reading(eyes: Eyes, window: Window) -> Reading:
    """The probe's reading of the sign-in window."""
    now = await seen(eyes, window)
    return Reading(now.state, evidence={"title": window.title, **now.evidence})


async def _settled(eyes: Eyes) -> tuple[View, Window | None, SignIn]:
    """The windows, and what the sign-in window shows, once both say something certain.

    The window is None when somebody is signed in. APP_NOT_READY when nothing gets certain.
    """

    async def certain() -> tuple[View, Window | None, SignIn] | None:
        view = await screen.look(eyes)
        if view.main is not None:
            return view, None, SignIn(None)
        if view.sign_in is None:
            return None
        now = await seen(eyes, view.sign_in)
        if now.state in {LoginState.UNKNOWN, LoginState.STARTING}:
            return None  # it is on its way
        return view, view.sign_in, now

    try:
        return await eyes.until("the sign-in or the main window", certain, timeout=SETTLE)
    except BridgeError as error:
        if error.code != "UI_ERROR":
            raise
        detail = "the app shows neither its sign-in nor its main window for certain"
        raise BridgeError("APP_NOT_READY", detail, retry_after=5, executed=False) from error


class CaptureQrFlow:
    """The kind `capture_qr`: a code that can be scanned now."""

    async def run(self, ctx: FlowContext[CaptureQr]) -> Mapping[str, Json]:
        """Renew the code if it has expired, and cut it out.

        The result is `{image, expires_at, payload}`: a PNG as a data URL, the code's text, and
        the end of its time as the code itself tells it. INVALID_STATE when there is no code.
        """
        view, window, now = await _settled(ctx.hands)
        if window is None:
            who = view.title.account if view.title else "somebody"
            raise BridgeError(
                "INVALID_STATE", f"{who} is signed in; sign out first", executed=False
            )
        if now.screen == "expired":
            window, now = await _renew(ctx.hands, window)
        if now.screen == "confirm":
            detail = "a phone has scanned the code; confirm or refuse it there"
            raise BridgeError("INVALID_STATE", detail, executed=False)
        return await _taken(ctx.hands, window)

    async def verify(self, ctx: VerifyContext[CaptureQr]) -> Verdict:
        """There is nothing to look for."""
        return Verdict(Found.NOT_DONE)


async def _renew(hands: Hands, window: Window) -> tuple[Window, SignIn]:
    """Click on the expired code and wait for what comes of it."""
    x, y, width, height = theme.QR_BOX
    await hands.activate(window.id)
    await hands.click(x + width // 2, y + height // 2, window.id)

    async def renewed() -> SignIn | None:
        now = await seen(hands, window)
        return now if now.screen not in {None, "expired"} else None

    return window, await hands.until("a fresh code", renewed)


async def _taken(hands: Hands, window: Window) -> dict[str, Json]:
    """The code as a result. Picture and text are of the same capture."""
    picture = await hands.capture(window.id)
    now = read_sign_in(picture)
    if now.code is None:
        raise BridgeError("UI_ERROR", "the code changed while it was taken", executed=False)
    return {
        "image": data_url(qr.cut_out(picture, now.code)),
        "expires_at": expiry(now.code.payload),
        "payload": now.code.payload,
    }


def expiry(payload: str) -> str | None:
    """Until when a code holds (RFC 3339), if it says so."""
    found = _UNTIL.search(payload)
    return None if found is None else rfc3339(int(found[1]) * 1000)


def data_url(picture: Image.Image) -> str:
    """A picture as a `data:` URL of a PNG."""
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


class LogoutFlow:
    """The kind `logout`: the menu's "Sign out…", confirmed."""

    async def run(self, ctx: FlowContext[Logout]) -> Mapping[str, Json]:
        """Sign out and see the sign-in. The result is `{signed_out, account}`.

        `signed_out` is false when nobody was signed in. FOCUS_LOST, and nothing more pressed,
        when any other dialog or menu stands in the way.
        """
        hands = ctx.hands
        view, window, _ = await _settled(hands)
        if window is not None or view.main is None or view.title is None:
            return {"signed_out": False, "account": None}
        screen.undisturbed(view)
        await self._open_menu(hands, view.main)
        await self._confirm(hands, await self._question(hands, view.main))
        await hands.until("the sign-in", partial(_signed_out, hands), timeout=SIGN_OUT_PATIENCE)
        await ctx.control.reread_login()
        return {"signed_out": True, "account": view.title.account}

    async def _open_menu(self, hands: Hands, main: Window) -> None:
        await hands.activate(main.id)
        await hands.chord("F10", window=main.id)

        async def menu() -> bool | None:
            view = await screen.look(hands)
            _only(view, ())
            return True if view.menus else None

        await hands.until("the menu", menu)

    async def _question(self, hands: Hands, main: Window) -> Window:
        """Choose "Sign out…"; the dialog that asks.

        By its letter: a menu that closed in between leaves a letter in the entry, where Return
        would send what stands there.
        """
        await hands.chord("s")

        async def asked() -> Window | None:
            view = await screen.look(hands)
            _only(view, (titles.SIGN_OUT,))
            if view.menus or not view.dialogs:
                return None
            return view.dialogs[0]

        question = await hands.until("the question whether to sign out", asked)
        if question.transient_for not in {None, main.id}:
            raise BridgeError("FOCUS_LOST", "the question is another window's", executed=False)
        return question

    async def _confirm(self, hands: Hands, question: Window) -> None:
        await hands.activate(question.id)
        view = await screen.look(hands)
        _only(view, (titles.SIGN_OUT,))
        if [dialog.id for dialog in view.dialogs] != [question.id]:
            raise BridgeError("FOCUS_LOST", "the question whether to sign out is gone")
        # Return presses the button that the dialog gave the focus to, "Sign out"
        await hands.chord("Return", window=question.id)

    async def verify(self, ctx: VerifyContext[Logout]) -> Verdict:
        """Signing out twice is signing out; there is nothing to prove."""
        return Verdict(Found.NOT_DONE)


def _only(view: View, allowed: tuple[str, ...]) -> None:
    """FOCUS_LOST when a dialog shows that is none of these."""
    for dialog in view.dialogs:
        if dialog.title not in allowed:
            raise BridgeError(
                "FOCUS_LOST", f"the window {dialog.title!r} opened in between", executed=False
            )


async def _signed_out(eyes: Eyes) -> bool | None:
    view = await screen.look(eyes)
    if view.main is not None or view.sign_in is None:
        return None
    now = await seen(eyes, view.sign_in)
    return True if now.state in {LoginState.QR, LoginState.CONFIRM} else None
