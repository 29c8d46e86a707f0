"""The demo chat app: what is read off its windows, and how its kinds are carried out.

Tk shows nothing to accessibility readers, so the window titles tell what is open, and pictures
tell what the entry and the sign-in window show. The journal is read only as the message history.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.apps import demo_screen as screen
from bridge.apps.base import AppSettings, LaunchSpec, Reading
from bridge.apps.demo_friends import AcceptFriendFlow, AddFriendFlow
from bridge.apps.demo_messages import ForwardFlow, RemarkFlow, RevokeFlow, SendFileFlow
from bridge.apps.demo_moments import (
    CommentFlow,
    DeleteMomentFlow,
    ForwardMomentFlow,
    LikeFlow,
    PublishFlow,
    ShareFlow,
)
from bridge.apps.demo_names import Names
from bridge.apps.demo_send import SendTextFlow
from bridge.apps.demo_signin import CaptureQrFlow, LogoutFlow, sign_in_reading
from bridge.demoapp import titles
from bridge.errors import BridgeError
from bridge.flow import Flow
from bridge.hands import Eyes, Hands
from bridge.kinds import Kind
from bridge.model import LoginState
from ui_backends import vision
from ui_backends.base import Window

ENV_PREFIX = "DESKBRIDGE_DEMO_"
"""Settings of the app itself begin so and are handed on."""

CLEAN_ROUNDS = 8
"""Dialogs, menus and searches that are closed before tidying gives up."""


class DemoAdapter:
    """See `bridge.apps.base.Adapter`."""

    name = "demo"
    durable_history = True
    kinds: Mapping[str, Kind] = {}

    def __init__(self, settings: AppSettings) -> None:
        self._settings = settings
        home = settings.state_dir, Names(settings.state_dir)
        self.flows: Mapping[str, Flow[Any]] = {
            "send_text": SendTextFlow(*home),
            "send_file": SendFileFlow(*home),
            "revoke_message": RevokeFlow(*home),
            "forward_message": ForwardFlow(*home),
            "set_remark": RemarkFlow(*home),
            "add_friend": AddFriendFlow(*home),
            "accept_friend": AcceptFriendFlow(*home),
            "publish_moment": PublishFlow(*home),
            "share_moment": ShareFlow(*home),
            "delete_moment": DeleteMomentFlow(*home),
            "forward_moment": ForwardMomentFlow(*home),
            "like_moment": LikeFlow(*home),
            "comment_moment": CommentFlow(*home),
            "capture_qr": CaptureQrFlow(),
            "logout": LogoutFlow(),
        }

    def launch(self) -> LaunchSpec:
        """The app from this very installation, on the bridge's state directory."""
        argv = (
            sys.executable,
            "-m",
            "bridge.demoapp",
            "--state-dir",
            str(self._settings.state_dir),
        )
        env = {
            name: value for name, value in self._settings.env.items() if name.startswith(ENV_PREFIX)
        }
        # an installed package needs no folder; the root keeps a local `bridge` from being taken
        return LaunchSpec(argv, env=env, cwd=Path("/"))

    def prepare(self) -> None:
        """Nothing: the app makes its folder itself."""

    async def probe(self, eyes: Eyes) -> Reading:
        """The main window's title tells the account; the sign-in window has to be looked at."""
        view = await screen.look(eyes)
        if view.main is not None and view.title is not None:
            state = LoginState.OFFLINE if view.title.offline else LoginState.LOGGED_IN
            return Reading(state, view.title.account, {"title": view.main.title})
        if view.sign_in is not None:
            return await sign_in_reading(eyes, view.sign_in)
        blank = vision.blank(await eyes.capture())
        return Reading(LoginState.UNKNOWN, evidence={"windows": 0, "screen_blank": blank})

    async def clean_screen(self, hands: Hands) -> None:
        """Dialogs, menus and the search closed, the entry empty. APP_NOT_READY without a window."""
        for _ in range(CLEAN_ROUNDS):
            if not await self._close_one(hands):
                break
        view = await screen.look(hands)
        if view.main is None:
            if view.sign_in is None:
                raise BridgeError("APP_NOT_READY", "the app shows no window", executed=False)
            return  # its sign-in has nothing to tidy
        screen.undisturbed(view)
        await hands.activate(view.main.id)
        await screen.empty_entry(hands, view.main.id)

    async def _close_one(self, hands: Hands) -> bool:
        """Close what stands in front; False when nothing does."""
        view = await screen.look(hands)
        if view.menus:
            # an open menu holds the keyboard itself, whatever window has the focus
            await hands.chord("Escape")
            await _gone(hands, view.menus[0])
        elif view.dialogs:
            # one that keeps the keyboard to itself has to go before what stands behind it
            front = min(view.dialogs, key=lambda w: w.title.split(" - ")[0] in titles.PANELS)
            await hands.activate(front.id)
            await hands.chord("Escape", window=front.id)
            await _gone(hands, front)
        elif view.main is not None and view.title is not None and view.title.searching:
            await hands.activate(view.main.id)
            await screen.leave_search(hands, view.main.id)
        else:
            return False
        return True


async def _gone(hands: Hands, window: Window) -> None:
    async def gone() -> bool | None:
        return (
            None if any(w.id == window.id and w.viewable for w in await hands.windows()) else True
        )

    await hands.until(f"the end of the window {window.title!r}", gone)
