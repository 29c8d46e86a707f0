"""Judging the app: its process, its window, its answer, and who is signed in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bridge.apps.base import Reading
from bridge.checks.result import Result, Status
from bridge.model import Json, LoginState
from ui_backends.base import Ping

RESTART = "restart it: POST /api/diagnostic/autofix/"


def process_state(pid: int) -> str | None:
    """The kernel's letter for a process's state (R, S, D, T, Z …); None when it is gone."""
    try:
        stat = (Path("/proc") / str(pid) / "stat").read_text()
    except OSError:
        return None
    return stat[stat.rindex(")") + 2 :].split()[0]


def running(pid: int | None, proven: bool, attention: str | None, log: Path) -> Result:
    """Whether the process that was launched or adopted lives, and is still that one."""
    data: dict[str, Json] = {"pid": pid, "proven": proven}
    if attention is not None:
        return Result(
            "app_running",
            "failed",
            f"it is not started any more: {attention}",
            f"look into {log} why it ends, then {RESTART}app_running",
            data,
        )
    if pid is None or not proven:
        return Result(
            "app_running",
            "failed",
            "no app process runs" if pid is None else f"pid {pid} is no longer the app",
            f"the bridge starts it by itself; if it does not come, look into {log}, "
            f"then {RESTART}app_running",
            data,
        )
    return Result("app_running", "ok", f"pid {pid}", None, data)


def window(count: int, hidden: int, app_up: bool) -> Result:
    """Whether the app shows a window: `count` that can be worked, `hidden` that cannot."""
    data: dict[str, Json] = {"windows": count, "hidden": hidden}
    if count:
        return Result("app_window", "ok", f"{count} on the screen", None, data)
    if not app_up:
        advice = "see the check `app_running`; an app that has just started takes a moment"
        return Result("app_window", "failed", "the app is not up", advice, data)
    detail = "the app shows no window" + (f" ({hidden} hidden)" if hidden else "")
    return Result("app_window", "failed", detail, f"{RESTART}app_window", data)


def responding(ping: Ping | None, state: str | None, spoken: bool, took: float) -> Result:
    """Whether its event loop turns.

    `ping` is None when there was no window to ask, `state` the kernel's letter for its process;
    `spoken` tells that this window has answered before; `took` is seconds.
    """
    check, advice = "app_responding", f"{RESTART}app_responding"
    data: dict[str, Json] = {"answer": None if ping is None else ping.value, "process": state}
    if state in {"T", "t"}:
        detail = "its process is stopped (SIGSTOP)"
        return Result(check, "failed", detail, f"let it go on (kill -CONT), or {advice}", data)
    if ping is None:
        return Result(check, "failed", "no window to ask", "see the check `app_window`", data)
    if ping is Ping.ALIVE:
        return Result(check, "ok", f"answered in {took * 1000:.0f} ms", None, data)
    if ping is Ping.SILENT or spoken:
        return Result(check, "failed", f"no answer within {took:.1f} s", advice, data)
    return Result(
        check,
        "warning",
        f"no answer within {took:.1f} s, and it never said that it would give one",
        f"look at its picture (POST /api/screenshot); if it hangs, {advice}",
        data,
    )


_SIGN_IN: Mapping[LoginState, tuple[Status, str, str | None]] = {
    LoginState.LOGGED_IN: ("ok", "signed in", None),
    LoginState.QR: (
        "warning",
        "it shows a QR code and waits",
        "sign in with the phone: POST /api/login/qr/start gives the code",
    ),
    LoginState.CONFIRM: ("warning", "it waits for the phone", "confirm the sign-in on the phone"),
    LoginState.LOGGED_OUT: ("warning", "nobody is signed in", "sign in"),
    LoginState.STARTING: ("warning", "it is still starting", "try again in a minute"),
    LoginState.OFFLINE: (
        "failed",
        "it has no connection to its service",
        "look at the network; the app connects again by itself",
    ),
    LoginState.BLOCKED: (
        "failed",
        "the service wants a person to act",
        "look at the app's picture (POST /api/screenshot) and do what it asks",
    ),
    LoginState.UNKNOWN: (
        "warning",
        "its screen cannot be read",
        "look at its picture (POST /api/screenshot)",
    ),
}


def accessibility(wanted: bool, trouble: str | None, elements: int | None) -> Result:
    """Whether the app's accessibility tree can be read.

    `wanted`: the seat has a reader for it; `trouble` says why it does not work; `elements` were
    read, None when the app offers no tree.
    """
    check, data = "accessibility", {"elements": elements}
    if not wanted:
        return Result(check, "ok", "not used: the app is read by its windows and pictures")
    if trouble is not None:
        advice = (
            "apt-get install at-spi2-core dbus; see log/dbus.log in the state directory; "
            "DESKBRIDGE_READERS=vision goes without"
        )
        return Result(check, "failed", f"the tree cannot be read: {trouble}", advice, data)
    if not elements:
        advice = (
            "GTK 2 needs libatk-adaptor and libgail-common, Qt QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1; "
            "a program that was started before its bus has to be restarted"
        )
        return Result(check, "warning", "the app offers no accessibility tree", advice, data)
    return Result(check, "ok", f"{elements} elements read", None, data)


def login(reading: Reading, cached: LoginState) -> Result:
    """The sign-in state as read just now, beside the one that the bridge goes by."""
    status, detail, advice = _SIGN_IN[reading.state]
    data: dict[str, Json] = {
        "state": reading.state.value,
        "account": reading.account,
        "known": cached.value,
        "evidence": dict(reading.evidence),
    }
    who = f" as {reading.account}" if reading.account else ""
    return Result("login", status, detail + who, advice, data)
