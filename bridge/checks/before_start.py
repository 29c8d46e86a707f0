"""Judging what a bridge needs before it starts: programs, Python, app, display, port."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bridge.checks import on_display
from bridge.checks.result import Fault, Result, Status, judged
from bridge.model import Json
from ui_backends.facts import Owner, XFacts

PACKAGES: Mapping[str, str] = {
    "Xvfb": "xvfb",
    "icewm": "icewm",
    "xdotool": "xdotool",
    "scrot": "scrot",
}
"""The programs that a bridge starts, and the Debian packages they are in."""

LEAST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Program:
    """A program as found. `error` says why it cannot run; None when it can."""

    path: str | None
    error: str | None = None


def programs(found: Mapping[str, Program], *, display_up: bool, manager_up: bool) -> Result:
    """Whether all are there and run; what is up already need not be started."""
    faults = []
    for name, program in found.items():
        spare = (name == "Xvfb" and display_up) or (name == "icewm" and manager_up)
        status: Status = "warning" if spare else "failed"
        package = PACKAGES.get(name, name)
        if program.path is None:
            advice = f"scripts/setup installs it, or: apt-get install {package}"
            faults.append(Fault(status, f"{name} is not installed", advice))
        elif program.error is not None:
            detail = f"{program.path} does not run: {program.error}"
            faults.append(Fault(status, detail, f"apt-get install --reinstall {package}"))
    data: dict[str, Json] = {name: program.path for name, program in found.items()}
    return judged("programs", faults, ", ".join(found), data)


def python(version: tuple[int, ...], tkinter_error: str | None) -> Result:
    """Whether this Python will do; `tkinter_error` is None when it is there or not needed."""
    faults = []
    told = ".".join(str(part) for part in version)
    if version < LEAST_PYTHON:
        least = ".".join(str(part) for part in LEAST_PYTHON)
        advice = "PYTHON=/path/to/python3 scripts/setup makes .venv with a newer one"
        faults.append(Fault("failed", f"Python {told}; it takes {least} or newer", advice))
    if tkinter_error is not None:
        faults.append(
            Fault(
                "failed",
                f"the demo app draws with tkinter, which does not load: {tkinter_error}",
                "apt-get install python3-tk, and make .venv with that Python (scripts/setup)",
            )
        )
    return judged("python", faults, f"{told} ({sys.executable})", {"version": told})


def app(name: str, program: str, path: str | None) -> Result:
    """Whether the app's program is there."""
    data: dict[str, Json] = {"app": name, "program": path}
    if path is None:
        advice = f"install {program}, or name another app with DESKBRIDGE_APP"
        return Result("app", "failed", f"{program}, the app {name}, is not there", advice, data)
    return Result("app", "ok", f"{name}: {path}", None, data)


def display_of_its_own() -> Result:
    """Of a bridge that was not told which display to work."""
    detail = "none is set: the bridge starts one of its own"
    return Result("display", "ok", detail, None, {"display": None})


def display_taken(name: str, bridge: Owner) -> Result:
    """Of a display that another bridge works; a second one would refuse to start."""
    program = on_display.program_of(bridge.pid)
    return Result(
        "display",
        "failed",
        f"{name} is worked by another bridge: {program}",
        "end that one, ask it with --state-dir, or set DESKBRIDGE_DISPLAY to another display",
        {"display": name, "pid": bridge.pid},
    )


def display_absent(name: str, lock: Path, holder: int | None) -> Result:
    """Of a display that nobody serves: Xvfb can be started there unless a lock file is in the way.

    `holder` is the living process that the lock file names; the server refuses to start while
    there is one, whatever it is.
    """
    data: dict[str, Json] = {"display": name}
    if holder is None:
        return Result("display", "ok", f"{name} is free: the bridge starts Xvfb there", None, data)
    program = on_display.program_of(holder)
    return Result(
        "display",
        "failed",
        f"{name} does not answer, and {lock} says that {program} serves it",
        f"if that is no X server, remove {lock}; else end it, or set DESKBRIDGE_DISPLAY to "
        "another display",
        data,
    )


def window_manager(name: str, facts: XFacts, *, can_start: bool) -> Result:
    """As on a running bridge; but a bridge that starts brings one up itself, if it can."""
    result = on_display.window_manager(name, facts)
    if result.status == "ok" or not can_start:
        return result
    return replace(
        result,
        status="warning",
        detail=f"no window manager runs on {name}",
        advice=f"the bridge starts icewm there; or start one of your own: `icewm --display {name}`",
    )


def port(host: str, number: int, error: str | None) -> Result:
    """Whether the bridge can listen there; `error` says why not."""
    data: dict[str, Json] = {"host": host, "port": number}
    if error is not None:
        return Result(
            "port",
            "failed",
            f"{host}:{number} cannot be had: {error}",
            f"`ss -ltnp 'sport = :{number}'` shows who has it; DESKBRIDGE_PORT takes another one, "
            "0 any free one",
            data,
        )
    return Result("port", "ok", "any free one" if number == 0 else f"{number} is free", None, data)
