"""A D-Bus session of the seat's own: the app finds the same one over its restarts.

A program that finds no session bus starts a daemon and leaves it behind, and one that finds a
stranger's shares it with everything there. So an adapter that asks for it gets a daemon that the
bridge starts, records, adopts after a crash and ends.
"""

from __future__ import annotations

import hashlib
import os
import select
import stat
from collections.abc import Mapping
from pathlib import Path

import structlog
import trio

from bridge.process import Child, Record
from ui_backends.base import UiError
from ui_backends.display import forget_a11y_bus

log = structlog.get_logger(__name__)

PATIENCE = 10.0
"""Seconds in which the daemon has to say its address."""

LONGEST = 70
"""Bytes of a runtime directory's path; a socket's whole path ends at 107, and the accessibility
bus adds a folder and a name of its own."""


class SessionBusError(Exception):
    """Raised when the daemon cannot be started; says what to do."""


def runtime_dir(state_dir: Path) -> Path:
    """The seat's XDG_RUNTIME_DIR, made if need be.

    It lies in the state directory, or, where that path is too long for a socket, in /tmp, always
    the same for one state directory. Raises SessionBusError when it belongs to somebody else.
    """
    folder = state_dir / "run" / "xdg"
    if len(os.fsencode(folder)) > LONGEST:
        name = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
        folder = Path("/tmp") / f"deskbridge-{os.getuid()}-{name}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise SessionBusError(f"{folder} belongs to somebody else; remove it")
    folder.chmod(0o700)
    return folder


class SessionBus:
    """A running daemon. Make it with `SessionBus.open`."""

    def __init__(self, address: str, child: Child, record: Record) -> None:
        self.address = address
        self._child = child
        self._record = record

    @classmethod
    async def open(cls, state_dir: Path, display: str, env: Mapping[str, str]) -> SessionBus:
        """Adopt an earlier run's, or start one for programs on `display`.

        Raises SessionBusError.
        """
        record = Record(state_dir / "run" / "dbus.json")
        known = record.read()
        if known is not None and known[1].get("display") == display:
            child = Child.adopt(known[0])
            if child is not None:
                log.info("session bus adopted", pid=child.pid)
                return cls(str(known[1]["address"]), child, record)
        child, address = await _start(state_dir, env)
        record.write(child.identity, address=address, display=display)
        try:
            if await forget_a11y_bus(display):
                log.info("address of an older accessibility bus taken off the display")
        except UiError as error:
            log.warning("display not asked for an older accessibility bus", error=str(error))
        log.info("session bus started", pid=child.pid)
        return cls(address, child, record)

    def alive(self) -> bool:
        """Whether the daemon lives."""
        return self._child.alive()

    def close(self) -> None:
        """Give the handle back; the daemon, if it lives, goes on."""
        self._child.close()

    async def stop(self) -> None:
        """End the daemon and what it started (they are in its group). Bounded."""
        await self._child.stop(grace=1.0, kill_grace=1.0)
        self._child.close()
        self._record.clear()


async def _start(state_dir: Path, env: Mapping[str, str]) -> tuple[Child, str]:
    runtime = runtime_dir(state_dir)
    readable, writable = os.pipe()
    argv = ["dbus-daemon", "--session", "--nofork", "--nopidfile"]
    argv += [f"--address=unix:path={runtime}/bus", f"--print-address={writable}"]
    own = {name: value for name, value in env.items() if name != "DBUS_SESSION_BUS_ADDRESS"}
    try:
        child = Child.start(
            argv,
            env={**own, "XDG_RUNTIME_DIR": str(runtime)},
            log_file=state_dir / "log" / "dbus.log",
            pass_fds=(writable,),
        )
    except FileNotFoundError as error:
        os.close(readable)
        raise SessionBusError("dbus-daemon is not installed; run scripts/setup") from error
    finally:
        os.close(writable)
    try:
        address = await trio.to_thread.run_sync(_read_line, readable)
    finally:
        os.close(readable)
    if not address:
        await child.stop()
        child.close()
        raise SessionBusError(f"dbus-daemon did not start; see {state_dir}/log/dbus.log")
    return child, address


def _read_line(readable: int) -> str:
    """What the daemon says, "" when it ended or is late."""
    text = b""
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([readable], [], [], PATIENCE)
        chunk = os.read(readable, 512) if ready else b""
        if not chunk:
            return ""
        text += chunk
    return text.decode().strip()
