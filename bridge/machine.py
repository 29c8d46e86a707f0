"""Looking at a machine before a bridge runs on it: what `deskbridge doctor` checks itself."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import trio

from bridge.apps.loading import load_adapter
from bridge.checks import before_start, on_display, on_machine
from bridge.checks.before_start import Program
from bridge.checks.result import Result, checked
from bridge.config import Settings, SettingsError
from bridge.process import Record
from ui_backends.base import DisplayDead
from ui_backends.facts import XFacts, read_facts, refusal
from ui_backends.lock import DisplayLock
from ui_backends.process import run

PROGRAM_TIME = 4.0
"""Seconds that a program may take to say its version."""

ORDER = (
    *("programs", "python", "app", "disk", "port", "locale", "fonts"),
    *("display", "window_manager", "keyboard", "clipboard", "x_clients"),
)
"""The checks as they are told; some only when there is something to look at."""

HARMLESS: Mapping[str, str] = {
    "Xvfb": "-help",
    "icewm": "--version",
    "xdotool": "--version",
    "scrot": "--version",
}
"""What each program is called with to see that it runs."""


async def look_at_machine(settings: Settings, *, bridge_runs: bool) -> list[Result]:
    """All checks, at the same time, in the order in which they are told.

    A running bridge answers for its display and its port itself.
    """
    machine = _Machine(settings)
    checks: dict[str, Callable[[], Awaitable[Result]]] = {
        "programs": machine.programs,
        "python": machine.python,
        "app": machine.app,
        "fonts": machine.fonts,
        "locale": machine.locale,
        "disk": machine.disk,
    }
    found: dict[str, Result] = {}
    if not bridge_runs:
        checks["port"] = machine.port
        found["display"] = await checked("display", machine.display)
        if machine.facts is not None:
            checks |= machine.on_display(machine.facts)
    async with trio.open_nursery() as nursery:
        for name, look in checks.items():
            nursery.start_soon(_one, found, name, look)
    return [found[name] for name in ORDER if name in found]


async def _one(found: dict[str, Result], name: str, look: Callable[[], Awaitable[Result]]) -> None:
    found[name] = await checked(name, look)


class _Machine:
    """The checks. `display` comes first: others depend on what it finds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._env = settings.env
        self._path = self._env.get("PATH", os.defpath)
        self._name = settings.display or _display_left(settings.state_dir)
        # What the X server told; None when there is none, or when it does not answer.
        self.facts: XFacts | None = None

    # -- programs ------------------------------------------------------------------------

    async def programs(self) -> Result:
        found: dict[str, Program] = {}
        async with trio.open_nursery() as nursery:
            for name in HARMLESS:
                nursery.start_soon(self._try, found, name)
        manager = self.facts is not None and self.facts.manager is not None
        return before_start.programs(
            {name: found[name] for name in HARMLESS},
            display_up=self.facts is not None,
            manager_up=manager,
        )

    async def _try(self, found: dict[str, Program], name: str) -> None:
        path = shutil.which(name, path=self._path)
        error = None if path is None else await self._trouble([path, HARMLESS[name]])
        found[name] = Program(path, error)

    async def _trouble(self, argv: list[str]) -> str | None:
        """Why a harmless call fails; None when it goes well."""
        env = {"PATH": self._path, "HOME": self._env.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
        try:
            done = await run(argv, timeout=PROGRAM_TIME, env=env)
        except OSError as error:
            return error.strerror or str(error)
        if done.timed_out:
            return f"no end within {PROGRAM_TIME:g} s"
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            return f"status {done.returncode}" + (f", {lines[-1]}" if lines else "")
        return None

    async def python(self) -> Result:
        error = None
        if self._settings.app == "demo":
            error = await self._trouble([sys.executable, "-c", "import tkinter"])
        return before_start.python(tuple(sys.version_info[:3]), error)

    async def app(self) -> Result:
        name = self._settings.app
        try:
            program = load_adapter(self._settings).launch().argv[0]
        except SettingsError as error:
            return Result("app", "failed", str(error), "set DESKBRIDGE_APP to one of them")
        return before_start.app(name, program, shutil.which(program, path=self._path))

    # -- the machine ---------------------------------------------------------------------

    async def fonts(self) -> Result:
        return on_machine.fonts(await on_machine.fonts_there(self._env))

    async def locale(self) -> Result:
        installed = await on_machine.installed_locales(self._env)
        return on_machine.locale(on_machine.locale_of(self._env), None, installed)

    async def disk(self) -> Result:
        folder = self._settings.state_dir
        return on_machine.disk(folder, await on_machine.disk_of(folder))

    async def port(self) -> Result:
        host, number = self._settings.host, self._settings.port
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((host, number))
            except OSError as error:
                return before_start.port(host, number, error.strerror or str(error))
        return before_start.port(host, number, None)

    # -- the display ---------------------------------------------------------------------

    async def display(self) -> Result:
        name = self._name
        if name is None:
            return before_start.display_of_its_own()
        try:
            refused = await refusal(name)
            if refused is None:
                self.facts = await read_facts(name, DisplayLock(name), seat=self._settings.seat)
        except DisplayDead as error:
            if isinstance(error.__cause__, TimeoutError):
                return on_display.display_dead(name, str(error))
            return before_start.display_absent(name, *_lock_of(name))
        if self.facts is not None and self.facts.seat is not None:
            return before_start.display_taken(name, self.facts.seat)
        return on_display.display(name, refused, self.facts)

    def on_display(self, facts: XFacts) -> Mapping[str, Callable[[], Awaitable[Result]]]:
        """The checks of a display that answers."""
        name = self._name or ""
        can_start = shutil.which("icewm", path=self._path) is not None
        judgments: Mapping[str, Callable[[], Result]] = {
            "window_manager": partial(
                before_start.window_manager, name, facts, can_start=can_start
            ),
            "keyboard": partial(on_display.keyboard, name, facts),
            "clipboard": partial(on_display.clipboard, facts),
            "x_clients": partial(on_display.x_clients, facts),
        }
        return {check: partial(_judged, judge) for check, judge in judgments.items()}


async def _judged(judge: Callable[[], Result]) -> Result:
    await trio.lowlevel.checkpoint()
    return judge()


def _display_left(state_dir: Path) -> str | None:
    """The display that an earlier run left running."""
    known = Record(state_dir / "run" / "xvfb.json").read()
    return None if known is None else str(known[1].get("display", "")) or None


def _lock_of(display: str) -> tuple[Path, int | None]:
    """The lock file of a display, and the living process that it names."""
    path = Path(f"/tmp/.X{display.removeprefix(':')}-lock")
    try:
        pid = int(path.read_text())
    except (OSError, ValueError):
        return path, None
    return path, pid if Path(f"/proc/{pid}").exists() else None
