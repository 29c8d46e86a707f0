"""Judging what an X server told: display, window manager, keyboard, clipboard, connections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bridge.checks.result import Fault, Result, judged
from bridge.model import Json
from ui_backends.facts import Owner, XFacts

NEARLY_FULL = 0.75
"""Share of the server's connections from which it is worth a warning."""

FULL = 0.95
"""Share from which the next program may find no place."""

CLIPBOARD_PROGRAMS = frozenset(
    {
        *("autocutsel", "clipit", "clipmenud", "clipster", "copyq", "diodon", "gpaste-daemon"),
        *("greenclip", "klipper", "parcellite", "qlipper", "vncconfig", "xfce4-clipman"),
    }
)
"""Programs that copy the clipboard whenever it changes, as the kernel names them."""

_FULL_SERVER = "maximum number of clients"


def program_of(pid: int | None) -> str:
    """A process as a person would look for it."""
    if pid is None:
        return "a program on another machine"
    try:
        name = (Path("/proc") / str(pid) / "comm").read_text().strip()
    except OSError:
        return f"pid {pid}"
    return f"{name} (pid {pid})"


def display(name: str, refusal: str | None, facts: XFacts | None) -> Result:
    """Of an X server that answered; `refusal` is why it takes no connection."""
    data: dict[str, Json] = {"display": name}
    if refusal is not None:
        if _FULL_SERVER in refusal.lower():
            return x_clients_full(name, "display")
        advice = f"let this user connect to {name} (xauth, or `xhost +si:localuser:$USER`)"
        return Result("display", "failed", f"{name} refuses: {refusal}", advice, data)
    if facts is not None:
        data |= {"width": facts.width, "height": facts.height}
    size = "" if facts is None else f", {facts.width}×{facts.height}"
    return Result("display", "ok", f"{name} answers{size}", None, data)


def display_dead(name: str, why: str) -> Result:
    """Of an X server that does not answer."""
    return Result(
        "display",
        "failed",
        why,
        f"if the X server of {name} is stopped, let it go on (kill -CONT); "
        "if it has ended or hangs, end it and start deskbridge anew",
        {"display": name},
    )


def x_clients_full(name: str, check: str = "x_clients") -> Result:
    """Of a server that has no place for one more connection."""
    return Result(
        check,
        "failed",
        f"{name} refuses: maximum number of clients reached; no program can connect any more",
        "end programs that hold many connections to this display, or start the X server with a "
        "larger -maxclients",
        {"display": name},
    )


def refused_for_want_of_place(error: Exception) -> bool:
    """Whether an error tells that the server is full."""
    return _FULL_SERVER in str(error).lower()


def window_manager(name: str, facts: XFacts) -> Result:
    """Whether one runs; without one windows can neither be listed nor activated."""
    data: dict[str, Json] = {"name": facts.manager}
    if facts.manager is None:
        return Result(
            "window_manager",
            "failed",
            f"no window manager runs on {name}: windows can neither be found nor brought forward",
            f"start one there (`icewm --display {name}`), "
            "or start deskbridge anew, which does it by itself",
            data,
        )
    return Result("window_manager", "ok", facts.manager or "one without a name", None, data)


def keyboard(name: str, facts: XFacts) -> Result:
    """Nothing held down, every key that flows use in its place, no repeating."""
    faults = []
    if facts.down:
        faults.append(
            Fault(
                "failed",
                f"held down: {', '.join(facts.down)}",
                "release it: POST /api/diagnostic/autofix/keyboard, "
                "or `xdotool keyup NAME` (`mouseup N` for a button)",
            )
        )
    if facts.unreachable:
        missing = ", ".join(facts.unreachable)
        faults.append(
            Fault(
                "failed",
                f"the layout has no key for {missing}",
                f"load one that has: `setxkbmap -display {name} us`; text of any script is "
                "pasted and needs no other layout",
            )
        )
    if facts.autorepeat:
        faults.append(
            Fault(
                "warning",
                "autorepeat is on: a key that stays down would be pressed again and again",
                f"switch it off: `xset -display {name} r off`, or start the X server with -r",
            )
        )
    if facts.caps_lock:
        faults.append(Fault("warning", "Caps Lock is on", "switch it off: `xdotool key Caps_Lock`"))
    data: dict[str, Json] = {
        "down": list(facts.down),
        "missing": list(facts.unreachable),
        "autorepeat": facts.autorepeat,
        "caps_lock": facts.caps_lock,
    }
    return judged("keyboard", faults, "nothing held down, all keys there, autorepeat off", data)


def clipboard(facts: XFacts, program: Callable[[int | None], str] = program_of) -> Result:
    """Whether a program takes over what is put into the clipboard.

    Some managers do not announce themselves; those are known by name, which is a reason to
    look and no more.
    """
    manager, owner = facts.clipboard_manager, facts.clipboard
    data: dict[str, Json] = {"manager": _told(manager), "owner": _told(owner)}
    if manager is None:
        quiet = [name for pid in facts.by_pid if _manages(name := program(pid))]
        if not quiet:
            return Result("clipboard", "ok", "no clipboard manager", None, data)
        detail = f"a program that watches the clipboard runs: {', '.join(quiet)}"
        return Result("clipboard", "warning", detail, _end_it(quiet[0]), data)
    named = program(manager.pid)
    advice = _end_it(named)
    if owner is not None and _same(manager, owner):
        detail = f"the clipboard manager {named} has taken the clipboard over"
        return Result("clipboard", "failed", detail, advice, data)
    return Result("clipboard", "warning", f"a clipboard manager runs: {named}", advice, data)


def _manages(program: str) -> bool:
    return program.partition(" ")[0] in CLIPBOARD_PROGRAMS


def _end_it(program: str) -> str:
    return (
        f"end {program}, or keep it off this display: it can take a text away in the middle of a "
        "paste, and it keeps what it sees"
    )


def _same(one: Owner, other: Owner) -> bool:
    return one.client == other.client or (one.pid is not None and one.pid == other.pid)


def _told(owner: Owner | None) -> Json:
    return None if owner is None else {"pid": owner.pid, "program": program_of(owner.pid)}


def x_clients(facts: XFacts) -> Result:
    """How many of the server's connections are taken, and by whom most."""
    share = facts.clients / facts.limit
    most = sorted(facts.by_pid.items(), key=lambda item: item[1], reverse=True)[:3]
    data: dict[str, Json] = {
        "clients": facts.clients,
        "limit": facts.limit,
        "most": [{"pid": pid, "program": program_of(pid), "clients": n} for pid, n in most],
    }
    detail = f"{facts.clients} of {facts.limit} connections are taken"
    if share < NEARLY_FULL:
        return Result("x_clients", "ok", detail, None, data)
    advice = "when all are taken no program can connect any more"
    if most:
        pid, count = most[0]
        advice = f"end {program_of(pid)}, which holds {count}: {advice}"
    return Result("x_clients", "failed" if share >= FULL else "warning", detail, advice, data)
