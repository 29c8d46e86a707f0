"""Taking what a bridge must have: state directory, lock, store, display, backend, adapter."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import structlog
import trio

from bridge.apps.loading import load_adapter
from bridge.clock import WallClock
from bridge.config import Settings, SettingsError
from bridge.core import Bridge
from bridge.desktop import Desktop, DesktopError
from bridge.diagnostics import Diagnostics
from bridge.errors import LostFence
from bridge.events import Hub
from bridge.kinds import CATALOGUE
from bridge.seat import Seat
from bridge.stats import SchedulerStats
from bridge.store import FileLock, LockLost, database_file, hold_flock, open_store
from ui_backends.a11y import open_a11y
from ui_backends.process import end_leftovers
from ui_backends.seatlock import Seat as SeatLock
from ui_backends.seatlock import SeatBusy, hold_seat
from ui_backends.xdotool import open_xdotool

log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_bridge(settings: Settings, closing: trio.Event) -> AsyncIterator[Bridge]:
    """A bridge with everything it needs; on leaving, what it started is ended.

    Raises SettingsError, AlreadyHeld, SeatBusy, DesktopError or BridgeError, each saying what
    to do.
    """
    adapter = load_adapter(settings)
    if settings.backend != "xdotool":
        raise SettingsError(
            f"DESKBRIDGE_BACKEND is {settings.backend!r}; this release has xdotool only"
        )
    state_dir = settings.state_dir
    state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    clock, stats = WallClock(), SchedulerStats()
    hub = Hub(clock)
    async with AsyncExitStack() as stack:
        database = settings.store_url or str(state_dir / "deskbridge.db")
        lock = stack.enter_context(hold_flock(_lock_file(database)))
        store = await stack.enter_async_context(open_store(database, on_commit=hub.publish))
        hub.last_seq = store.last_seq
        desktop = await Desktop.open(
            settings.display,
            state_dir,
            settings.env,
            # a supervisor that starts the app also gives it its session bus
            session_bus=adapter.launch().session_bus and settings.app_start == "bridge",
        )
        stack.push_async_callback(desktop.stop)
        a11y = None
        if "a11y" in settings.readers and desktop.bus_address is not None:
            a11y = await stack.enter_async_context(open_a11y(desktop.bus_address))
        seat_lock = await stack.enter_async_context(_take_seat(desktop.display, settings.seat))
        state_id = keep_secret(state_dir / "id")
        ended = await end_leftovers(state_id)
        backend = await stack.enter_async_context(open_xdotool(desktop.display, state_id=state_id))
        released = await backend.release_all()
        if ended or released:
            log.warning("left-overs ended", processes=len(ended), keys=released)
        kinds = {**CATALOGUE, **adapter.kinds}
        seat = Seat(
            settings=settings,
            adapter=adapter,
            backend=backend,
            desktop=desktop,
            store=store,
            hub=hub,
            kinds=kinds,
            clock=clock,
            stats=stats,
            lease_check=lambda: _check_lease(lock),
            a11y=a11y,
        )
        stack.push_async_callback(seat.restarter.stop)
        yield Bridge(
            settings=settings,
            store=store,
            hub=hub,
            clock=clock,
            kinds=kinds,
            seat=seat,
            stats=stats,
            token=keep_secret(state_dir / "token"),
            seat_lost=seat_lock.lost,
            closing=closing,
            diagnostics=Diagnostics(
                seat=seat, store=store, settings=settings, desktop=desktop, lock=backend.lock
            ),
        )


@asynccontextmanager
async def _take_seat(display: str, name: str) -> AsyncIterator[SeatLock]:
    """The display's seat. Raises DesktopError when another bridge works it."""
    try:
        async with hold_seat(display, name) as seat:
            yield seat
    except SeatBusy as error:
        raise DesktopError(f"{error}; give this one another DESKBRIDGE_DISPLAY") from error


def _lock_file(database: str) -> Path:
    """The lock beside the database. Raises SettingsError for one that has no file."""
    try:
        path = database_file(database)
    except ValueError as error:
        raise SettingsError(f"DESKBRIDGE_STORE_URL cannot be used: {error}") from error
    if path is None:
        raise SettingsError("DESKBRIDGE_STORE_URL: this release keeps its queue in SQLite only")
    return Path(f"{path}.lock")


def keep_secret(path: Path) -> str:
    """The random text in a file of mode 0600, made at first use and kept from then on."""
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        text = secrets.token_urlsafe(24)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w") as file:
            file.write(text + "\n")
        return text


def _check_lease(lock: FileLock) -> None:
    try:
        lock.check()
    except LockLost as error:
        raise LostFence(str(error)) from error
