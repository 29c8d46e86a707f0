"""Pidgin with one XMPP account: real software that nobody here wrote, driven like any other.

A person signs the account in once, in Pidgin, and lets it keep the password; the bridge never
touches accounts, but that a `logout` unticks the one that is enabled. Pidgin's folder is `pidgin`
in the state directory. Its own text log proves what was said, but it is written after a message
has left: it is no durable history.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.apps.base import AppSettings, LaunchSpec, Reading
from bridge.apps.pidgin_chats import Chats
from bridge.apps.pidgin_files import GTKRC, merge_prefs
from bridge.apps.pidgin_send import SendTextFlow
from bridge.apps.pidgin_signout import LogoutFlow
from bridge.apps.pidgin_view import PidginView, reading
from bridge.flow import Flow
from bridge.hands import Eyes, Hands
from bridge.kinds import Kind


class PidginAdapter:
    """See `bridge.apps.base.Adapter`."""

    name = "pidgin"
    durable_history = False
    kinds: Mapping[str, Kind] = {}

    def __init__(self, settings: AppSettings) -> None:
        self.folder = settings.state_dir / "pidgin"
        self._view = PidginView(self.folder)
        self._chats = Chats(self._view)
        self.flows: Mapping[str, Flow[Any]] = {
            "send_text": SendTextFlow(self._view, self._chats),
            "logout": LogoutFlow(self._view, self._chats),
        }

    def launch(self) -> LaunchSpec:
        """Pidgin on its own folder; in English, since windows are known by their titles."""
        return LaunchSpec(("pidgin", "-c", str(self.folder)), env={"LANGUAGE": "en"})

    def prepare(self) -> None:
        """The preferences that the flows rely on; the others stay as they are."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        prefs = self.folder / "prefs.xml"
        old = prefs.read_text("utf-8") if prefs.exists() else None
        _replace(prefs, merge_prefs(old))
        _replace(self.folder / "gtkrc-2.0", GTKRC)

    async def probe(self, eyes: Eyes) -> Reading:
        """Signed in is who has a connection; the windows say the rest."""
        return reading(await self._view.look(eyes))

    async def clean_screen(self, hands: Hands) -> None:
        """Nothing open but the buddy list and what a person may be asked."""
        await self._chats.tidy(hands)


def _replace(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)
