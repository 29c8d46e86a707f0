"""The diagnosis of a running bridge: what is well, what is not, and what to do about it.

Every check looks for itself and changes nothing; what touches the display does so under its
lock, one command at a time, beside whatever the seat is doing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import trio

from bridge.checks import on_app, on_display, on_machine
from bridge.checks.result import Result, checked, worst
from bridge.config import Settings
from bridge.desktop import Desktop
from bridge.errors import BridgeError
from bridge.hands import Eyes
from bridge.model import Json
from bridge.process import descendants, identify
from bridge.seat import Seat
from bridge.store import Store
from ui_backends.a11y import Limits
from ui_backends.base import DisplayDead, Ping, Window
from ui_backends.facts import XFacts, read_facts, refusal
from ui_backends.lock import DisplayLock

PING_PATIENCE = 2.0
"""Seconds in which the app is to answer."""

TREE_LIMITS = Limits(elements=300)
"""Enough to see that the app's tree can be read."""

STORE_TIME = 2.0
"""Seconds that looking the database through may take."""


class _Display:
    """The X server's facts, read at most once for all the checks of one diagnosis."""

    def __init__(self, name: str, lock: DisplayLock) -> None:
        self.name = name
        self._lock = lock
        self._once = trio.Lock()
        # What was read, or why it could not be; None until somebody asked.
        self._known: XFacts | DisplayDead | None = None

    async def facts(self) -> XFacts:
        """Raises DisplayDead."""
        async with self._once:
            if self._known is None:
                try:
                    self._known = await read_facts(self.name, self._lock)
                except DisplayDead as error:
                    self._known = error
        if isinstance(self._known, DisplayDead):
            raise self._known
        return self._known


class Diagnostics:
    """The checks of one seat, by name, in the order in which they are told."""

    def __init__(
        self, *, seat: Seat, store: Store, settings: Settings, desktop: Desktop, lock: DisplayLock
    ) -> None:
        self._seat = seat
        self._store = store
        self._settings = settings
        self._desktop = desktop
        self._lock = lock
        self._eyes = Eyes(seat.backend, seat.a11y)
        self._spoken: set[int] = set()
        """Windows that have answered before: their silence means something."""
        self._turn = trio.Lock()
        """One diagnosis at a time, so that many callers do not crowd the work off the display."""
        self._checks: Mapping[str, Callable[[_Display], Awaitable[Result]]] = {
            "display": self._display,
            "window_manager": self._window_manager,
            "keyboard": self._keyboard,
            "locale": self._locale,
            "fonts": self._fonts,
            "clipboard": self._clipboard,
            "x_clients": self._x_clients,
            "app_running": self._app_running,
            "app_window": self._app_window,
            "app_responding": self._app_responding,
            "accessibility": self._accessibility,
            "login": self._login,
            "store": self._store_check,
            "disk": self._disk,
        }

    async def run(self, check: str) -> dict[str, Json]:
        """One check: `{check, status, detail, advice, data, ms}`. NOT_FOUND names all there are."""
        look = self._checks.get(check)
        if look is None:
            names = ", ".join(self._checks)
            raise BridgeError("NOT_FOUND", f"there is no check {check!r}; there are {names}")
        async with self._turn:
            return (await checked(check, partial(look, self._look()))).to_json()

    async def all(self) -> dict[str, Json]:
        """Every check at the same time: `{status, checks}`, the status the gravest of them."""
        display = self._look()
        found: dict[str, Result] = {}

        async def one(name: str, look: Callable[[_Display], Awaitable[Result]]) -> None:
            found[name] = await checked(name, partial(look, display))

        async with self._turn, trio.open_nursery() as nursery:
            for name, look in self._checks.items():
                nursery.start_soon(one, name, look)
        results = [found[name] for name in self._checks]
        return {
            "status": worst([result.status for result in results]),
            "checks": [result.to_json() for result in results],
        }

    def _look(self) -> _Display:
        return _Display(self._desktop.display, self._lock)

    # -- the display ---------------------------------------------------------------------

    async def _display(self, display: _Display) -> Result:
        try:
            refused = await refusal(display.name)
            facts = None if refused is not None else await display.facts()
        except DisplayDead as error:
            return on_display.display_dead(display.name, str(error))
        return on_display.display(display.name, refused, facts)

    async def _window_manager(self, display: _Display) -> Result:
        return on_display.window_manager(display.name, await display.facts())

    async def _keyboard(self, display: _Display) -> Result:
        return on_display.keyboard(display.name, await display.facts())

    async def _clipboard(self, display: _Display) -> Result:
        return on_display.clipboard(await display.facts())

    async def _x_clients(self, display: _Display) -> Result:
        try:
            return on_display.x_clients(await display.facts())
        except DisplayDead as error:
            if on_display.refused_for_want_of_place(error):
                return on_display.x_clients_full(display.name)
            raise

    # -- the machine ---------------------------------------------------------------------

    async def _locale(self, display: _Display) -> Result:
        env, app = self._settings.env, None
        if self._pid is not None:
            found = on_machine.environment_of(self._pid)
            app = None if found is None else on_machine.locale_of(found)
        installed = await on_machine.installed_locales(env)
        return on_machine.locale(on_machine.locale_of(env), app, installed)

    async def _fonts(self, display: _Display) -> Result:
        return on_machine.fonts(await on_machine.fonts_there(self._settings.env))

    async def _disk(self, display: _Display) -> Result:
        folder = self._settings.state_dir
        return on_machine.disk(folder, await on_machine.disk_of(folder))

    async def _store_check(self, display: _Display) -> Result:
        return on_machine.store(await self._store.health(STORE_TIME))

    # -- the app -------------------------------------------------------------------------

    @property
    def _pid(self) -> int | None:
        launch = self._seat.restarter.launch
        return None if launch is None else launch.child.pid

    async def _app_running(self, display: _Display) -> Result:
        launch = self._seat.restarter.launch
        proven = launch is not None and (
            launch.child.alive() and identify(launch.child.pid) == launch.child.identity
        )
        log = self._settings.state_dir / "log"
        return on_app.running(self._pid, proven, self._seat.known.attention, log)

    async def _own_windows(self, display: _Display) -> tuple[list[Window], int]:
        """The app's windows that can be worked, and how many others it has."""
        await display.facts()  # tells a dead display at once
        pid = self._pid
        if pid is None:
            return [], 0
        family = {pid, *descendants(pid)}
        own = [window for window in await self._eyes.windows() if window.pid in family]
        there = [window for window in own if window.viewable and window.managed]
        return there, sum(not window.viewable for window in own)

    async def _app_window(self, display: _Display) -> Result:
        there, hidden = await self._own_windows(display)
        return on_app.window(len(there), hidden, self._pid is not None)

    async def _app_responding(self, display: _Display) -> Result:
        there, _ = await self._own_windows(display)
        state = None if self._pid is None else on_app.process_state(self._pid)
        if not there:
            return on_app.responding(None, state, False, 0.0)
        largest = max(there, key=lambda window: window.region.width * window.region.height)
        begun = trio.current_time()
        answer = await self._eyes.ping(largest.id, PING_PATIENCE)
        if answer is Ping.ALIVE:
            self._spoken.add(largest.id)
        took = trio.current_time() - begun
        return on_app.responding(answer, state, largest.id in self._spoken, took)

    async def _accessibility(self, display: _Display) -> Result:
        if not self._eyes.has_a11y or not self._seat.adapter.launch().session_bus:
            return on_app.accessibility(False, None, None)
        try:
            app = None if self._pid is None else await self._eyes.a11y_app(self._pid)
            tree = None if app is None else await self._eyes.a11y_tree(app.ref, TREE_LIMITS)
        except BridgeError as error:
            return on_app.accessibility(True, error.detail, None)
        return on_app.accessibility(True, None, None if tree is None else tree.count)

    async def _login(self, display: _Display) -> Result:
        await display.facts()
        reading = await self._seat.adapter.probe(self._eyes)
        return on_app.login(reading, self._seat.known.login)
