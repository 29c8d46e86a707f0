"""The board as text for a terminal: readable without colour, and safe whatever names contain."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bridge.cli.board import Board, Done, Running, Wait

_FRAME_LINES = 16
"""Lines beside the seats' and the rows of the three lists, which share the rest."""

_STYLE: Mapping[str, str] = {
    "succeeded": "green",
    "resolved": "green",
    "failed": "red",
    "uncertain": "yellow",
}


def clean(text: object, most: int = 60) -> str:
    """`text` on one line, without characters that would steer the terminal."""
    safe = "".join(c if _harmless(c) else " " for c in str(text))
    safe = " ".join(safe.split())
    return safe if len(safe) <= most else safe[: most - 1] + "…"


def _harmless(character: str) -> bool:
    """No control characters; of the format characters only those that emoji are joined with."""
    category = unicodedata.category(character)
    return category not in {"Cc", "Cf", "Cs", "Zl", "Zp"} or character == "\u200d"


def span(ms: int) -> str:
    """A duration: `0.3 s`, `42 s`, `3 min 05 s`, `2 h 10 min`."""
    seconds = max(0, ms) / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def clock(ms: int | None) -> str:
    """The time of day here; empty for None."""
    return "" if ms is None else f"{datetime.fromtimestamp(ms / 1000):%H:%M:%S}"


def draw(board: Board, *, now: int, height: int = 40) -> RenderableType:
    """The whole picture; `now` is UTC milliseconds, `height` the lines there are."""
    made = 0 if board.running is None else len(board.running.steps)
    lines = max(3, height - _FRAME_LINES - len(board.seats))
    steps, waits, ends = share(lines, (made, len(board.waiting), len(board.done)))
    parts: list[RenderableType] = [_connection(board, now)]
    parts += [_seat(seat) for seat in board.seats]
    parts.append(_queue(board.queue, now))
    parts += [Text(), _running(board, now, steps), Text(), _waiting(board, now, waits)]
    parts += [Text(), _done(board.done, ends)]
    if board.notice:
        parts += [Text(), Text(f"last notice: {clean(board.notice, 120)}", style="dim")]
    return Group(*parts)


def share(lines: int, wanted: Sequence[int]) -> list[int]:
    """Deal out `lines`, one each in turn, to those who still want one."""
    given = [0] * len(wanted)
    while lines > 0 and any(has < wants for has, wants in zip(given, wanted, strict=True)):
        for one, wants in enumerate(wanted):
            if lines > 0 and given[one] < wants:
                given[one] += 1
                lines -= 1
    return given


def _connection(board: Board, now: int) -> Text:
    line = Text("deskbridge ", style="bold").append(clean(board.base), style="not bold")
    if board.live:
        return line.append("  live", style="green")
    if board.lost_since is None:
        line.append("  no connection yet", style="yellow")
    else:
        line.append(f"  connection lost {span(now - board.lost_since)} ago", style="red")
    if board.trouble:
        line.append(f" ({clean(board.trouble, 80)}); trying again, {board.tries}")
    return line


def _seat(seat: Mapping[str, Any]) -> Text:
    display = seat.get("display") or {}
    login = seat.get("login") or {}
    account = f" as {clean(login['account'])}" if login.get("account") else ""
    line = Text(f"seat {clean(seat.get('name', '?'))}: ")
    line.append(f"display {clean(display.get('name', '?'))} ")
    line.append(*(("alive", "green") if display.get("alive") else ("dead", "red")))
    line.append(f" · app {clean(seat.get('app', '?'))} ")
    line.append(*(("up", "green") if seat.get("app_up") else ("not up", "red")))
    state = clean(login.get("state", "unknown"))
    line.append(" · sign-in ").append(
        state + account, "green" if state == "logged_in" else "yellow"
    )
    if seat.get("stuck"):
        line.append(" · STUCK: a flow does not end", "bold red")
    if seat.get("needs_attention"):
        line.append(f" · NEEDS ATTENTION: {clean(seat['needs_attention'])}", "bold red")
    return line


def _queue(queue: Mapping[str, Any], now: int) -> Text:
    pending = queue.get("pending", 0)
    by = queue.get("pending_by_priority") or {}
    line = Text(f"queue: {pending} pending")
    filled = [f"{count} {name}" for name, count in by.items() if count]
    if filled:
        line.append(f" ({', '.join(filled)})")
    counts = queue.get("counts") or {}
    for state in ("scheduled", "paused", "held", "uncertain"):
        if counts.get(state):
            line.append(f" · {counts[state]} {state}", "yellow" if state == "uncertain" else "")
    held = queue.get("held_by")
    if held:
        until = _time_left(_ms(held.get("until")), now)
        line.append(f" · held by {clean(held.get('reason'))}{until}", "yellow")
    return line


def _ms(value: Any) -> int | None:
    if not isinstance(value, str):
        return None
    return round(datetime.fromisoformat(value).timestamp() * 1000)


def _time_left(until: int | None, now: int) -> str:
    if until is None or until <= now:
        return ""
    return f" for {span(until - now)} (until {clock(until)})"


def _running(board: Board, now: int, rows: int) -> RenderableType:
    running = board.running
    if running is None:
        return Text("NOW  nothing runs", style="bold")
    head = Text("NOW  ", style="bold").append(clean(board.name(running.id, running.kind), 80))
    if running.started is not None:
        head.append(f"  {span(now - running.started)}", "not bold")
    if running.attempt > 1:
        head.append(f"  try {running.attempt}", "yellow not bold")
    return Group(head, _steps(running, rows))


def _steps(running: Running, rows: int) -> RenderableType:
    shown = list(running.steps)[-rows:] if rows else []
    table = _table(("step", "right"), ("command", "left"), ("took", "right"), ("", "left"))
    first = running.steps_made - len(shown) + 1
    for number, step in enumerate(shown, first):
        mark = Text("ok", "green") if step.ok else Text("failed", "red")
        if step.detail:
            mark.append(f" {clean(step.detail)}", "default")
        table.add_row(str(number), Text(clean(step.name)), f"{step.ms:.0f} ms", mark)
    return table


def _waiting(board: Board, now: int, rows: int) -> RenderableType:
    head = Text("NEXT  ", style="bold").append(
        f"{board.waiting_total} wait" if board.waiting_total else "nothing waits", "not bold"
    )
    if not board.waiting:
        return head
    table = _table(
        ("action", "left"), ("priority", "left"), ("waits", "right"), ("why", "left"),
        ("starts", "right"),
    )  # fmt: skip
    for one in board.waiting[:rows]:
        table.add_row(*_wait_cells(one, now))
    return Group(head, table)


def _wait_cells(one: Wait, now: int) -> Sequence[RenderableType]:
    """Text objects where a name may be in it: a string's square brackets would be markup."""
    return (
        Text(clean(one.title)),
        Text(clean(one.priority)),
        "" if one.since is None else span(now - one.since),
        Text(clean(one.reason) + _time_left(one.until, now)),
        "" if one.eta is None else f"in {span(one.eta - now)}",
    )


def _done(done: Sequence[Done], rows: int) -> RenderableType:
    if not done:
        return Text("DONE  nothing yet", style="bold")
    table = _table(
        ("at", "left"), ("action", "left"), ("outcome", "left"), ("took", "right"), ("why", "left")
    )
    for one in list(done)[:rows]:
        table.add_row(
            clock(one.at),
            Text(clean(one.title)),
            Text(one.outcome, _STYLE.get(one.outcome, "")),
            "" if one.took is None else span(one.took),
            Text(clean(one.why)),
        )
    return Group(Text("DONE", style="bold"), table)


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", no_wrap=True)
    return table
