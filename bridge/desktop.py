"""The display a seat works on: an X server and a window manager, started or adopted.

What this bridge or an earlier run with the same state directory started is its own and ends
with it; a display that somebody else brought up is used and left alone.
"""

from __future__ import annotations

import os
import select
from collections.abc import Mapping
from pathlib import Path

import structlog
import trio

from bridge.polling import poll
from bridge.process import Child, Record
from bridge.sessionbus import SessionBus, SessionBusError, runtime_dir
from ui_backends.display import display_answers, wm_running

log = structlog.get_logger(__name__)

SCREEN = "1280x800x24"
START_PATIENCE = 15.0
"""Seconds that an X server or a window manager may take to come up."""

ICEWM_PREFERENCES = """\
# Written at each start.
ShowTaskBar=0
TaskBarAutoHide=0
ShowWorkspaceStatus=0
ClickToFocus=1
FocusOnAppRaise=0
RaiseOnClickClient=1
SmartPlacement=1
CenterTransientsOnOwner=1
UseMouseWheel=0
"""


class DesktopError(Exception):
    """Raised when display or window manager cannot be brought up; says what to do."""


class Desktop:
    """One X display with a window manager. Make it with `Desktop.open`."""

    def __init__(self, display: str, state_dir: Path, env: Mapping[str, str]) -> None:
        self.display = display
        self.session_bus: SessionBus | None = None
        self._state_dir = state_dir
        self._env = env
        self._server: Child | None = None
        self._manager: Child | None = None

    @classmethod
    async def open(
        cls,
        display: str | None,
        state_dir: Path,
        env: Mapping[str, str],
        *,
        session_bus: bool = False,
    ) -> Desktop:
        """Adopt a running display, or start one; likewise window manager and session bus.

        `display` None: the one an earlier run left, else any free one. Raises DesktopError.
        """
        desktop = cls(display or "", state_dir, env)
        try:
            if not await desktop._adopt():
                await desktop._start_server(display)
            await desktop._ensure_manager()
            if session_bus:
                await desktop._open_bus()
        except BaseException:  # also a signal: what was started ends with us
            with trio.CancelScope(shield=True):
                await desktop.stop()
            raise
        return desktop

    def app_env(self) -> dict[str, str]:
        """The environment for programs on this display."""
        kept = {
            name: value
            for name, value in self._env.items()
            if name in {"HOME", "PATH", "TZ", "USER", "LOGNAME", "TMPDIR"}
            or name.startswith(("DESKBRIDGE_DEMO_", "PYTHON"))
        }
        return {
            "HOME": str(self._state_dir),
            "PATH": os.defpath,
            **kept,
            "DISPLAY": self.display,
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(runtime_dir(self._state_dir)),
            # an app that finds no session bus starts a daemon of its own and leaves it behind
            "DBUS_SESSION_BUS_ADDRESS": self.bus_address or "disabled:",
        }

    @property
    def bus_address(self) -> str | None:
        """The session bus that programs on this display are told of."""
        if self.session_bus is not None:
            return self.session_bus.address
        return self._env.get("DBUS_SESSION_BUS_ADDRESS")

    def server_ended(self) -> bool:
        """Whether the X server we are in charge of has ended."""
        return self._server is not None and not self._server.alive()

    async def tend(self) -> None:
        """Start again what we were in charge of and that has ended: window manager, bus."""
        if self._manager is not None and not self._manager.alive():
            log.warning("window manager ended", pid=self._manager.pid)
            self._manager.close()
            self._manager = None
            await self._ensure_manager()
        if self.session_bus is not None and not self.session_bus.alive():
            log.warning("session bus ended")
            self.session_bus.close()
            await self._open_bus()

    async def _open_bus(self) -> None:
        try:
            self.session_bus = await SessionBus.open(self._state_dir, self.display, self.app_env())
        except SessionBusError as error:
            raise DesktopError(str(error)) from error

    async def stop(self) -> None:
        """End what is ours. Bounded."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop, self._manager, "wm")
            nursery.start_soon(self._stop, self._server, "xvfb")
            if self.session_bus is not None:
                nursery.start_soon(self.session_bus.stop)

    async def _stop(self, child: Child | None, name: str) -> None:
        if child is not None:
            await child.stop(grace=1.0, kill_grace=1.0)
            child.close()
            self._record(name).clear()

    def _record(self, name: str) -> Record:
        return Record(self._state_dir / "run" / f"{name}.json")

    async def _adopt(self) -> bool:
        known = self._record("xvfb").read()
        if known is not None:
            identity, facts = known
            if not self.display or self.display == facts["display"]:
                self.display = str(facts["display"])
                self._server = Child.adopt(identity)
                if self._server is not None:
                    log.info("display adopted", display=self.display, pid=identity.pid)
                    return True
        if self.display and await display_answers(self.display, timeout=2.0):
            log.info("display of somebody else adopted", display=self.display)
            return True
        return False

    async def _start_server(self, wanted: str | None) -> None:
        readable, writable = os.pipe()
        argv = ["Xvfb", *([wanted] if wanted else []), "-displayfd", str(writable)]
        argv += ["-screen", "0", SCREEN, "-nolisten", "tcp", "-noreset", "-r"]
        try:
            self._server = Child.start(
                argv,
                env={"PATH": self._env.get("PATH", os.defpath)},
                log_file=self._state_dir / "log" / "xvfb.log",
                pass_fds=(writable,),
            )
        except FileNotFoundError as error:
            raise DesktopError("Xvfb is not installed; run scripts/setup") from error
        finally:
            os.close(writable)
        try:
            number = await trio.to_thread.run_sync(_read_number, readable)
        finally:
            os.close(readable)
        if number is None:
            await self._server.stop()
            raise DesktopError(
                f"Xvfb did not start{f' on {wanted}' if wanted else ''}; "
                f"see {self._state_dir}/log/xvfb.log, or set DESKBRIDGE_DISPLAY to a free display"
            )
        self.display = f":{number}"
        self._record("xvfb").write(self._server.identity, display=self.display)
        log.info("display started", display=self.display, pid=self._server.pid)

    async def _ensure_manager(self) -> None:
        known = self._record("wm").read()
        if known is not None and known[1].get("display") == self.display:
            self._manager = Child.adopt(known[0])
        if await wm_running(self.display):
            return
        preferences = self._state_dir / "icewm"
        preferences.mkdir(parents=True, exist_ok=True)
        (preferences / "preferences").write_text(ICEWM_PREFERENCES)
        try:
            self._manager = Child.start(
                ["icewm", "--display", self.display],
                env={**self.app_env(), "ICEWM_PRIVCFG": str(preferences)},
                log_file=self._state_dir / "log" / "wm.log",
            )
        except FileNotFoundError as error:
            raise DesktopError("icewm is not installed; run scripts/setup") from error
        self._record("wm").write(self._manager.identity, display=self.display)
        if not await poll(self._manager_there, START_PATIENCE):
            raise DesktopError(f"icewm did not come up; see {self._state_dir}/log/wm.log")

    async def _manager_there(self) -> bool | None:
        return True if await wm_running(self.display) else None


def _read_number(readable: int) -> int | None:
    """The display number that Xvfb writes once it is ready; None when it ended or is late."""
    text = b""
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([readable], [], [], START_PATIENCE)
        chunk = os.read(readable, 16) if ready else b""
        if not chunk:
            return None
        text += chunk
    return int(text)
