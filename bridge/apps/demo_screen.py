"""Moves through the demo app's main window: waiting for titles, searching, emptying the entry."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from PIL import Image

from bridge.apps.demo_names import Names
from bridge.apps.demo_view import (
    Hits,
    MainTitle,
    Named,
    View,
    entry_is_empty,
    entry_region,
    view_of,
)
from bridge.demoapp import titles
from bridge.errors import BridgeError
from bridge.flow import RetryLater
from bridge.hands import Eyes, Hands
from ui_backends import vision
from ui_backends.base import Window, WindowId

T = TypeVar("T")

TITLE_PATIENCE = 5.0
"""Seconds in which the title has to show what a key did; a busy app takes its time."""

MAX_HITS = 500
"""Hits that a search may have; more are not walked through."""


async def look(eyes: Eyes) -> View:
    """The app's windows now."""
    return view_of(await eyes.windows())


async def main_window(
    eyes: Eyes, owner: str | None = None, *, beside: Collection[WindowId] = ()
) -> tuple[Window, MainTitle]:
    """The main window, fit to send from. APP_NOT_READY, NOT_LOGGED_IN, FOCUS_LOST.

    With `owner`, it must be that account's: another may have signed in since this was claimed.
    The windows `beside` it are the flow's own.
    """
    view = await look(eyes)
    if view.main is None or view.title is None:
        if view.sign_in is not None:
            raise BridgeError("NOT_LOGGED_IN", "the app shows its sign-in", executed=False)
        raise BridgeError("APP_NOT_READY", "the app shows no window", executed=False)
    if owner not in {None, view.title.account}:
        raise BridgeError("NOT_LOGGED_IN", "another account is signed in", executed=False)
    if view.title.offline:
        raise BridgeError("APP_NOT_READY", "the app is offline", executed=False)
    undisturbed(view, beside)
    return view.main, view.title


def undisturbed(view: View, beside: Collection[WindowId] = ()) -> None:
    """FOCUS_LOST when a dialog or a menu stands in the way that is none of those `beside`.

    What the app says itself is told as such: INVALID_STATE, or a throttle.
    """
    for window in (*view.dialogs, *view.menus):
        if window.id in beside:
            continue
        if window.title == titles.TOO_FREQUENT:
            raise RetryLater("the app says that this is too frequent", queue=True, counts=False)
        name, _, why = window.title.partition(" - ")
        if name == titles.REFUSED:
            raise BridgeError("INVALID_STATE", f"the app refuses: {why}", executed=False)
        raise BridgeError(
            "FOCUS_LOST", f"the window {window.title!r} opened in between", executed=False
        )


async def require_focus(eyes: Eyes, window: WindowId) -> None:
    """FOCUS_LOST when the keyboard focus is elsewhere."""
    if await eyes.active_window() != window:
        raise BridgeError("FOCUS_LOST", "the focus left the window", executed=False)


async def until_title(eyes: Eyes, what: str, pick: Callable[[MainTitle], T | None]) -> T:
    """What `pick` finds in the main window's title, as soon as it is not None."""

    async def seen() -> T | None:
        _, title = await main_window(eyes)
        return pick(title)

    return await eyes.until(what, seen, timeout=TITLE_PATIENCE)


async def search(hands: Hands, main: WindowId, wanted: str) -> list[Named]:
    """Search and read every hit; the last one stays highlighted.

    A search that is open already is left first: its hits could be taken for the new ones.
    """
    await leave_search(hands, main)
    await hands.chord("ctrl", "f", window=main)
    await until_title(hands, "the search", lambda title: title.searching or None)
    await hands.paste_text(main, wanted)
    hits = await until_title(hands, "the search's result", lambda title: title.hits)
    found: list[Named] = []
    if hits.total > MAX_HITS:
        raise BridgeError(
            "CONTACT_NOT_FOUND", f"{hits.total} hits are too many to read", executed=False
        )
    for position in range(1, hits.total + 1):
        hit = await _hit_at(hands, position, hits.total)
        found.append(hit)
        if position < hits.total:
            await hands.chord("Down", window=main)
    return found


async def leave_search(hands: Hands, main: WindowId) -> None:
    """Close the search if it is open."""
    view = await look(hands)
    if view.title is None or not view.title.searching:
        return
    await hands.chord("Escape", window=main)

    async def left() -> bool | None:
        title = (await look(hands)).title
        return None if title is not None and title.searching else True

    await hands.until("the end of the search", left)


async def _hit_at(hands: Hands, position: int, total: int) -> Named:
    def at(title: MainTitle) -> Named | None:
        hits: Hits | None = title.hits
        return hits.hit if hits and (hits.position, hits.total) == (position, total) else None

    return await until_title(hands, f"hit {position} of {total}", at)


def choose(hits: list[Named], wanted: str) -> int:
    """The place of the one contact that is meant. CONTACT_NOT_FOUND, AMBIGUOUS_CONTACT."""
    meant = [place for place, hit in enumerate(hits) if hit.id == wanted]
    # an id is unique, so it also names one of several contacts that share a name
    meant = meant or [place for place, hit in enumerate(hits) if hit.is_called(wanted)]
    if not meant:
        raise BridgeError(
            "CONTACT_NOT_FOUND", f"no contact is called exactly {wanted!r}", executed=False
        )
    if len(meant) > 1:
        raise BridgeError(
            "AMBIGUOUS_CONTACT",
            f"{len(meant)} contacts are called {wanted!r}; send to one of their ids",
            executed=False,
            extra={"candidates": [hits[place].to_json() for place in meant]},
        )
    return meant[0]


async def open_chat(
    hands: Hands, main: WindowId, title: MainTitle, wanted: str, names: Names
) -> Named:
    """Open the chat with exactly this contact and return who it is.

    An open chat is used as it is when `wanted` is its id, or the name that a search has found to
    be its alone: another contact may have that name by now, which `names` looks up.
    """
    known = await names.recall(wanted)
    open_now = None if title.searching else title.chat
    if open_now is not None and (open_now.id == wanted or open_now == known):
        return open_now
    hits = await search(hands, main, wanted)
    place = choose(hits, wanted)
    for position in range(len(hits) - 1, place, -1):
        await hands.chord("Up", window=main)
        await _hit_at(hands, position, len(hits))
    target = hits[place]
    await hands.chord("Return", window=main)
    await until_title(hands, "the chat", lambda now: now.chat == target or None)
    names.keep(wanted, target)
    return target


async def entry_picture(eyes: Eyes, main: WindowId) -> Image.Image:
    """The entry as it looks now."""
    return await eyes.capture(main, entry_region(await eyes.window(main)))


async def empty_entry(hands: Hands, main: WindowId) -> Image.Image:
    """Empty the entry and see that it is; its picture then.

    The keys are pressed even when it looks empty: spaces and zero-width characters do not show.
    """
    await hands.chord("ctrl", "a", window=main)
    await hands.chord("BackSpace", window=main)

    async def empty() -> Image.Image | None:
        picture = await entry_picture(hands, main)
        return picture if entry_is_empty(picture) else None

    return await hands.until("an empty entry", empty)


async def settled_draft(hands: Hands, main: WindowId, before: Image.Image) -> Image.Image:
    """The entry's picture once text has come in and has stopped changing."""
    last = before

    async def settled() -> Image.Image | None:
        nonlocal last
        now = await entry_picture(hands, main)
        if not vision.changed(before, now):
            undisturbed(await look(hands))
            await require_focus(hands, main)
            return None
        same, last = not vision.changed(last, now), now
        return now if same else None

    return await hands.until("the text in the entry", settled)
