"""What all of the demo app's panel flows have in common: the commit point and the proof.

The app's journal, its message history, is on disk before an effect shows: it proves what
happened. A panel that still shows what was to be pressed, in an app that has answered since,
proves that nothing did.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import trio

from bridge.apps import demo_screen as screen
from bridge.apps.base import Found, Verdict
from bridge.apps.demo_names import Names
from bridge.apps.demo_panels import Panels
from bridge.apps.demo_view import Named
from bridge.demoapp import journal
from bridge.errors import BridgeError
from bridge.flow import FlowContext, VerifyContext
from bridge.hands import Eyes
from bridge.kinds import Act
from bridge.model import Json
from ui_backends.base import Ping

P = TypeVar("P", bound=Act)

HISTORY_PATIENCE = 8.0
"""Seconds after the key in which the journal has to show the effect."""


class PanelFlow(Generic[P]):
    """A flow that ends with one key in a panel. Its `run` calls `press` once, or finds it done."""

    answers: ClassVar[Mapping[str, str]] = {}
    """Members of the result, and the journal's names for them."""

    def __init__(self, state_dir: Path, names: Names) -> None:
        self._state_dir = state_dir
        self._names = names

    async def run(self, ctx: FlowContext[P]) -> Mapping[str, Json]:
        """Carry it out on the main window of the owner."""
        hands = ctx.hands
        main, _ = await screen.main_window(hands)
        await hands.activate(main.id)
        await screen.main_window(hands, ctx.owner)
        return await self.work(ctx, Panels(hands, main, ctx.owner))

    async def work(self, ctx: FlowContext[P], panels: Panels) -> Mapping[str, Json]:
        """Find the exact target, complete the panel, press."""
        raise NotImplementedError

    async def chat(self, ctx: FlowContext[P], panels: Panels, wanted: str) -> Named:
        """Open the chat with exactly this contact."""
        _, title = await screen.main_window(ctx.hands, ctx.owner)
        return await screen.open_chat(ctx.hands, panels.main.id, title, wanted, self._names)

    async def press(
        self,
        ctx: FlowContext[P],
        panels: Panels,
        *keys: str,
        effect: str,
        facts: Mapping[str, Json],
        to: str | None = None,
        closes: bool = True,
    ) -> Mapping[str, Json]:
        """Go through the commit point, wait for the effect, leave a tidy screen.

        `facts` are what the journal's line must say; the panel `closes` by itself, or is left.
        """
        panel = panels.top
        mark: dict[str, Json] = {
            "position": await trio.to_thread.run_sync(journal.size, self._state_dir),
            "effect": effect,
            "facts": dict(facts),
            "main": panels.main.id,
            "window": panel.window.id,
            "pid": panels.main.pid,
            "title": panel.title,
        }
        if to is not None:
            mark["to"] = to
        await ctx.commit(
            mark,
            recheck=panels.recheck,
            act=partial(ctx.hands.chord, *keys, window=panel.window.id),
        )

        async def happened() -> Mapping[str, Json] | None:
            view = await screen.look(ctx.hands)
            done = await self._done(mark)
            if done is None:
                screen.undisturbed(view, panels.windows)
            return done

        result = await ctx.hands.until(
            f"{effect} in the app's history", happened, timeout=HISTORY_PATIENCE
        )
        await (panels.closed() if closes else panels.leave())
        return result

    async def already(self, panels: Panels, **result: Json) -> Mapping[str, Json]:
        """It is as asked already: leave, and say so."""
        await panels.leave()
        return {**result, "verified": True, "already": True}

    async def _done(self, mark: Mapping[str, Json]) -> Mapping[str, Json] | None:
        entry = await trio.to_thread.run_sync(entry_since, self._state_dir, mark)
        return None if entry is None else self.result(entry)

    def result(self, entry: Mapping[str, Any]) -> dict[str, Json]:
        """The action's result from the journal's line."""
        return {**{name: entry[fact] for name, fact in self.answers.items()}, "verified": True}

    async def verify(self, ctx: VerifyContext[P]) -> Verdict:
        """Done, if the journal says so; not done, if the app has ended or the panel still waits.

        The journal is read after an answered ping: the app has dealt with the key by then.
        """
        mark = ctx.mark
        alive = not ctx.app_ended and await _answers(ctx.eyes, mark["main"])
        result = await self._done(mark)
        evidence: dict[str, Json] = {
            "app_ended": ctx.app_ended,
            "answered": alive,
            "history_from": mark["position"],
            "in_history": result is not None,
            "panel": mark["title"],
        }
        if result is not None:
            return Verdict(Found.DONE, result, evidence)
        if ctx.app_ended:
            return Verdict(Found.NOT_DONE, evidence=evidence)
        still = alive and await _still_waits(ctx.eyes, mark)
        evidence["panel_still_there"] = still
        if still and await self._done(mark) is None:
            return Verdict(Found.NOT_DONE, evidence=evidence)
        return Verdict(Found.UNKNOWN, evidence=evidence)


def entry_since(state_dir: Path, mark: Mapping[str, Json]) -> Mapping[str, Any] | None:
    """The journal's line after the mark that has the effect and says all of its facts."""
    facts: Mapping[str, Json] = {"effect": mark["effect"], **mark["facts"]}
    for entry in journal.entries(state_dir, mark["position"]):
        if all(name in entry and entry[name] == value for name, value in facts.items()):
            return entry
    return None


async def _answers(eyes: Eyes, window: int) -> bool:
    try:
        return await eyes.ping(window, timeout=2.0) is Ping.ALIVE
    except BridgeError:
        return False


async def _still_waits(eyes: Eyes, mark: Mapping[str, Json]) -> bool:
    """Whether the panel that was pressed, and no other, says what it said before the key."""
    try:
        window = await eyes.window(mark["window"])
    except BridgeError:
        return False
    return window.viewable and (window.pid, window.title) == (mark["pid"], mark["title"])
