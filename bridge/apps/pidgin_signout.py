"""Signs the account out of Pidgin: its menu's "Disable", which a person undoes in the same menu."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from bridge.apps.base import Found, Verdict
from bridge.apps.pidgin_chats import Chats
from bridge.apps.pidgin_view import PidginView, Seen, reading, require_focus
from bridge.errors import BridgeError
from bridge.flow import FlowContext, VerifyContext
from bridge.hands import Eyes, Hands
from bridge.kinds import Logout
from bridge.model import Json, LoginState
from ui_backends.base import Window

PATIENCE = 12.0
"""Seconds until Pidgin has closed the connection and written down that it did (it waits 5 s)."""


class LogoutFlow:
    """The kind `logout` in Pidgin."""

    def __init__(self, view: PidginView, chats: Chats) -> None:
        self._view = view
        self._chats = chats

    async def run(self, ctx: FlowContext[Logout]) -> Mapping[str, Json]:
        """Disable the account and see it gone. The result is `{signed_out, account}`.

        `signed_out` is false when no account was enabled. INVALID_STATE when it cannot be told
        whose entry the menu's last one is.
        """
        hands = ctx.hands
        seen = await self._view.look(hands)
        if seen.buddy_list is None:
            raise BridgeError("APP_NOT_READY", "Pidgin shows no buddy list", executed=False)
        if reading(seen).state is LoginState.LOGGED_OUT and not seen.asks_password:
            return {"signed_out": False, "account": None}
        account = _the_account(seen)
        await self._chats.tidy(hands)
        await self._disable(hands, seen.buddy_list)
        await hands.until("the sign-out", partial(self._out, hands), timeout=PATIENCE)
        await ctx.control.reread_login()
        return {"signed_out": True, "account": account}

    async def _disable(self, hands: Hands, buddy_list: Window) -> None:
        """Accounts, last entry, its submenu, Disable: each menu is seen before the next key."""
        await require_focus(hands, buddy_list.id)
        await hands.chord("alt", "a", window=buddy_list.id)
        await hands.until("the menu", partial(_menus, hands, buddy_list, 1))
        await hands.chord("Up")
        await hands.chord("Right")
        await hands.until("the account's menu", partial(_menus, hands, buddy_list, 2))
        await hands.chord("d")
        await hands.until("the menu's end", partial(_menus, hands, buddy_list, 0))

    async def _out(self, eyes: Eyes) -> bool | None:
        return reading(await self._view.look(eyes)).state is LoginState.LOGGED_OUT or None

    async def verify(self, ctx: VerifyContext[Logout]) -> Verdict:
        """Signing out twice is signing out; there is nothing to prove."""
        return Verdict(Found.NOT_DONE)


def _the_account(seen: Seen) -> str:
    """The one account that is enabled. Pidgin writes some seconds later what a person ticked."""
    names = {account.jid for account in seen.accounts if account.enabled}
    names |= {account.jid for account in seen.online or ()}
    if len(names) != 1:
        detail = f"{len(names)} accounts are enabled in Pidgin; disable the right one by hand"
        raise BridgeError("INVALID_STATE", detail, executed=False)
    return names.pop()


async def _menus(eyes: Eyes, buddy_list: Window, count: int) -> bool | None:
    """Whether so many of Pidgin's menus are open; FOCUS_LOST when a window came in between."""
    own = [w for w in await eyes.windows() if w.pid == buddy_list.pid and w.viewable]
    for window in own:
        if window.dialog:
            raise BridgeError(
                "FOCUS_LOST", f"the window {window.title!r} opened in between", executed=False
            )
    return sum(not w.managed for w in own) == count or None
