"""`deskbridge doctor`: what is well on this machine and with its bridge, and what to do if not."""

from __future__ import annotations

import io
import json
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bridge.checks.result import Result, worst
from bridge.cli.client import get
from bridge.cli.draw import clean
from bridge.cli.problem import CliError, Exit
from bridge.cli.target import Target, Whereabouts
from bridge.config import Settings, SettingsError
from bridge.machine import look_at_machine

ANSWER_TIME = 12.0
"""Seconds in which a bridge that does not hang has done all its checks."""

_WORDS = {"ok": "ok", "warning": "warning", "failed": "FAILED"}
_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red"}
_MOST = 600
"""Characters of a detail or an advice that are shown."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A list of checks with a heading; each as `Result.to_json` has it."""

    title: str
    checks: Sequence[Mapping[str, Any]]


def doctor(options: Namespace, where: Whereabouts) -> Exit:
    """Check and tell; the exit status says whether anything failed."""
    settings = _settings(where)
    target, said = _ask(where)
    machine: list[dict[str, Any]] = []
    if target is None or target.local:
        look = partial(look_at_machine, settings, bridge_runs=said is not None)
        machine = [result.to_json() for result in trio.run(look)]
    bridge = [] if said is None else list(said)
    status = worst([check["status"] for check in (*machine, *bridge)])
    if options.json:
        document = {
            "status": status,
            "machine": machine,
            "bridge": None if said is None or target is None
            else {"url": target.base, "checks": bridge},
        }  # fmt: skip
        print(json.dumps(document, ensure_ascii=False))
    else:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal that knows ASCII only is no reason to end without an answer.
            sys.stdout.reconfigure(errors="replace")
        title = f"The bridge at {target.base}" if said is not None and target else ""
        _print(_Section("This machine", machine), _Section(title, bridge))
        if said is None:
            print(f"No bridge runs with {settings.state_dir}.")
        print(_verdict(machine, bridge))
    return Exit.FAILED if status == "failed" else Exit.OK


def _settings(where: Whereabouts) -> Settings:
    given = {} if where.state_dir is None else {"DESKBRIDGE_STATE_DIR": where.state_dir}
    try:
        return Settings.from_env({**os.environ, **given})
    except SettingsError as error:
        raise CliError("UNUSABLE", str(error), Exit.USAGE) from error


def _ask(where: Whereabouts) -> tuple[Target | None, Sequence[Mapping[str, Any]] | None]:
    """The bridge that runs and what it says; (None, None) when none is known.

    A bridge that was named by its address has to answer. Raises CliError.
    """
    named = where.url or os.environ.get("DESKBRIDGE_URL")
    target = None
    try:
        target = where.find()
        return target, _checks(target)
    except CliError as error:
        if error.exit_status is not Exit.UNREACHABLE or named:
            if target is not None and target.local and not named:
                return target, [_mute(error)]
            raise
    return None, None


def _checks(target: Target) -> Sequence[Mapping[str, Any]]:
    document = get(target, "/api/diagnostic", answer_time=ANSWER_TIME).json()
    checks: Sequence[Mapping[str, Any]] = document["checks"]
    return checks


def _mute(error: CliError) -> dict[str, Any]:
    """Of a bridge that runs but gives no diagnosis."""
    return Result(
        "bridge",
        "failed",
        f"{error.code}: {error.detail}",
        "name the right bridge with --state-dir, or its token with DESKBRIDGE_TOKEN; "
        "if it hangs, end it and start it anew",
    ).to_json()


def _print(*sections: _Section) -> None:
    console = Console(highlight=False)
    for section in sections:
        if not section.checks:
            continue
        if console.is_terminal:
            console.print(_table(section))
        else:
            # For a pipe or a file: a line per check, whatever its length.
            print("\n".join(_lines(section)))


def _table(section: _Section) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.title, table.title_justify, table.title_style = section.title, "left", "bold"
    for no_wrap in (True, True, False):
        table.add_column(no_wrap=no_wrap)
    for check in section.checks:
        told = Text(clean(check["detail"], _MOST))
        if check["advice"]:
            told.append(f"\n→ {clean(check['advice'], _MOST)}", style="bold")
        status = check["status"]
        table.add_row(Text(_WORDS[status], style=_STYLES[status]), check["check"], told)
    return table


def _lines(section: _Section) -> list[str]:
    lines = [section.title]
    for check in section.checks:
        lines.append(
            f"  {_WORDS[check['status']]:8}{check['check']}: {clean(check['detail'], _MOST)}"
        )
        if check["advice"]:
            lines.append(f"          -> {clean(check['advice'], _MOST)}")
    return lines


def _verdict(*lists: Sequence[Mapping[str, Any]]) -> str:
    """One sentence, naming what failed."""
    statuses = [(check["check"], check["status"]) for checks in lists for check in checks]
    failed = list(dict.fromkeys(name for name, status in statuses if status == "failed"))
    if failed:
        return f"Failed: {', '.join(failed)}."
    warned = list(dict.fromkeys(name for name, status in statuses if status == "warning"))
    return f"It works, but look at: {', '.join(warned)}." if warned else "All is well."
