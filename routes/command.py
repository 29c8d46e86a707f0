"""`deskbridge serve`: open the bridge, serve it, and end everything in order."""

from __future__ import annotations

import os
import sys
from functools import partial

import trio

from bridge.config import Settings, SettingsError
from bridge.core import Bridge, SeatLost
from bridge.desktop import DesktopError
from bridge.errors import BridgeError, LostFence
from bridge.lifetime import watch_signals
from bridge.logs import configure_logging
from bridge.opening import open_bridge
from bridge.polling import poll
from bridge.seat import DisplayEnded
from bridge.store import AlreadyHeld, NewerDatabase
from routes.core_api import CoreApi
from routes.server import ServerConfig, serve

HARD_DEADLINE = 14.0
"""Seconds from the signal to the forced end of the process."""

READY_PATIENCE = 20.0
"""Seconds that the greeting waits for the app, so that what it shows works at once."""

_EXPECTED = (
    SettingsError,
    DesktopError,
    BridgeError,
    LostFence,
    AlreadyHeld,
    NewerDatabase,
    SeatLost,
    DisplayEnded,
    OSError,
)


def run_server(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the exit status: 0, or 1 with a sentence on stderr."""
    os.umask(0o077)  # what is kept is nobody else's to read
    configure_logging()
    try:
        trio.run(_main, settings)
    except BaseException as error:
        told = _sentences(error)
        if told is None:
            raise
        print("\n".join(f"deskbridge: {line}" for line in told), file=sys.stderr)
        return 1
    return 0


def _sentences(error: BaseException) -> list[str] | None:
    """What to tell about an expected end; None for a defect, which keeps its traceback."""
    if isinstance(error, BaseExceptionGroup):
        told = [_sentences(one) for one in error.exceptions]
        return None if None in told else [line for lines in told for line in lines or ()]
    return [str(error)] if isinstance(error, _EXPECTED) else None


async def _main(settings: Settings) -> None:
    closing, opened, starting = trio.Event(), trio.Event(), trio.CancelScope()

    async def abandon_start() -> None:
        await closing.wait()
        if not opened.is_set():
            starting.cancel()

    async with trio.open_nursery() as outermost:
        await outermost.start(partial(watch_signals, closing, hard_deadline_s=HARD_DEADLINE))
        outermost.start_soon(abandon_start)
        with starting:
            async with open_bridge(settings, closing) as bridge:
                opened.set()
                await _serve(bridge, settings)
        outermost.cancel_scope.cancel()


async def _serve(bridge: Bridge, settings: Settings) -> None:
    core: CoreApi = bridge
    async with trio.open_nursery() as nursery:
        config = ServerConfig(settings.host, settings.port, settings.grace)
        host, port = await nursery.start(serve, core, config)
        await nursery.start(_work, bridge)
        (settings.state_dir / "port").write_text(f"{port}\n")
        await poll(partial(_is_ready, bridge), READY_PATIENCE)
        _greet(bridge, f"http://{host}:{port}", settings)


async def _is_ready(bridge: Bridge) -> bool | None:
    return (await bridge.ready())[0] or bridge.closing.is_set() or None


async def _work(
    bridge: Bridge, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Run the seat until the bridge is closing, and let it end."""
    async with trio.open_nursery() as nursery:
        await nursery.start(bridge.run)
        task_status.started()
        await bridge.closing.wait()
        await bridge.shutdown()
        nursery.cancel_scope.cancel()


def _greet(bridge: Bridge, address: str, settings: Settings) -> None:
    token = (settings.state_dir / "token").read_text().strip()
    print(
        f"deskbridge is at {address} (status: {address}/api/status)\n"
        f"Token ({settings.state_dir / 'token'}): {token}\n"
        f"Send a first message:\n\n"
        f"  curl -sS {address}/api/send/text \\\n"
        f"    -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\\n"
        f'    -d \'{{"to": "Alice", "text": "hello"}}\'\n',
        flush=True,
    )
