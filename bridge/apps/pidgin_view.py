"""Looks at a running Pidgin: its windows, its accounts, and which of them is signed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from bridge.apps.base import Reading
from bridge.apps.pidgin_disk import process_age, read_accounts, read_contacts, signed_on
from bridge.apps.pidgin_files import PROTOCOL, Account, Contact
from bridge.errors import BridgeError
from bridge.hands import Eyes
from bridge.model import LoginState
from ui_backends.base import Window, WindowId

T = TypeVar("T")

START_PATIENCE = 60.0
"""Seconds after its start in which a Pidgin that is not signed in counts as starting."""

BUDDY_LIST = "buddy_list"
CONVERSATION = "conversation"
PASSWORD_ROLE, PASSWORD_TITLE = "multifield", "Pidgin"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. `online` are the accounts whose connection stands; None: it cannot be told."""

    buddy_list: Window | None = None
    windows: tuple[Window, ...] = ()
    accounts: tuple[Account, ...] = ()
    online: tuple[Account, ...] | None = ()
    age: float | None = None
    was_online: bool = False
    trouble: str = ""

    @property
    def asks_password(self) -> bool:
        """Pidgin shows a question, and an enabled account has no stored password."""
        asking = any((w.role, w.title) == (PASSWORD_ROLE, PASSWORD_TITLE) for w in self.windows)
        return asking and any(a.enabled and not a.password for a in self.accounts)


@dataclass(frozen=True, slots=True)
class Session:
    """A Pidgin that is signed in."""

    pid: int
    buddy_list: Window
    account: Account
    windows: tuple[Window, ...] = field(default=())

    def conversations(self) -> list[Window]:
        """The conversation windows that were open at the look."""
        return [w for w in self.windows if w.role == CONVERSATION]


def reading(seen: Seen) -> Reading:
    """The sign-in state of a look."""
    enabled = [a for a in seen.accounts if a.enabled]
    evidence = {
        "windows": [f"{w.role}: {w.title}" for w in seen.windows if w.role != CONVERSATION],
        "enabled": [a.jid for a in enabled],
        "errors": {a.jid: a.error for a in seen.accounts if a.error},
    }
    if seen.buddy_list is None:
        return Reading(LoginState.UNKNOWN, None, evidence | {"why": "no buddy list"})
    if seen.online is None or seen.trouble:
        why = seen.trouble or "the process cannot be read"
        return Reading(LoginState.UNKNOWN, None, evidence | {"why": why})
    evidence["online"] = [a.jid for a in seen.online]
    if len(seen.online) > 1:
        return Reading(LoginState.UNKNOWN, None, evidence | {"why": "several accounts are online"})
    if seen.online:
        return Reading(LoginState.LOGGED_IN, seen.online[0].jid, evidence)
    account = enabled[0].jid if len(enabled) == 1 else None
    return Reading(_not_online(seen, bool(enabled)), account, evidence)


def _not_online(seen: Seen, enabled: bool) -> LoginState:
    if not enabled or seen.asks_password:
        return LoginState.LOGGED_OUT
    if not seen.was_online and seen.age is not None and seen.age < START_PATIENCE:
        return LoginState.STARTING
    return LoginState.OFFLINE


class PidginView:
    """Looks at the Pidgin that uses `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._disk = trio.CapacityLimiter(2)
        # The process that was last seen signed in: without a connection it is offline, not new.
        self._was_online: int | None = None

    async def read(self, work: Callable[[], T]) -> T:
        """Run a blocking read of files in a thread."""
        return await trio.to_thread.run_sync(work, limiter=self._disk)

    async def look(self, eyes: Eyes) -> Seen:
        """One look at windows, files and process."""
        everything = await eyes.windows()
        buddy_list = next((w for w in everything if w.role == BUDDY_LIST and w.pid), None)
        if buddy_list is None or buddy_list.pid is None:
            return Seen()
        pid = buddy_list.pid
        windows = tuple(w for w in everything if w.pid == pid)
        try:
            accounts, online = await self.read(partial(_accounts, self.folder, pid))
        except (OSError, ValueError) as error:
            return Seen(buddy_list, windows, trouble=str(error))
        if online:
            self._was_online = pid
        age = await self.read(partial(process_age, pid))
        return Seen(buddy_list, windows, accounts, online, age, was_online=self._was_online == pid)

    async def session(self, eyes: Eyes) -> Session:
        """The signed-in Pidgin. Raises BridgeError APP_NOT_READY or NOT_LOGGED_IN."""
        seen = await self.look(eyes)
        state = reading(seen).state
        if state is LoginState.LOGGED_IN and seen.online and seen.buddy_list:
            pid = seen.buddy_list.pid or 0
            return Session(pid, seen.buddy_list, seen.online[0], seen.windows)
        if state is LoginState.LOGGED_OUT:
            raise BridgeError("NOT_LOGGED_IN", "no account is signed in", executed=False)
        raise BridgeError("APP_NOT_READY", f"Pidgin is {state.value}", executed=False)

    async def contacts(self, account: Account) -> list[Contact]:
        """The account's buddies. Raises BridgeError UI_ERROR when they cannot be read."""
        try:
            return await self.read(partial(read_contacts, self.folder, account))
        except (OSError, ValueError) as error:
            raise BridgeError("UI_ERROR", f"no buddy list: {error}", executed=False) from error

    async def connected(self, session: Session) -> bool:
        """Whether the session's connection still stands."""
        work = partial(signed_on, session.pid, self.folder, session.account)
        return bool(await self.read(work))


def _accounts(folder: Path, pid: int) -> tuple[tuple[Account, ...], tuple[Account, ...] | None]:
    accounts = tuple(a for a in read_accounts(folder) if a.protocol == PROTOCOL)
    states = [signed_on(pid, folder, account) for account in accounts]
    if None in states:
        return accounts, None
    return accounts, tuple(a for a, on in zip(accounts, states, strict=True) if on)


async def require_focus(eyes: Eyes, window: WindowId) -> None:
    """Raise FOCUS_LOST unless the keyboard focus is in `window`."""
    if await eyes.active_window() != window:
        raise BridgeError("FOCUS_LOST", "another window has the keyboard focus", executed=False)
