"""How a command ends: its exit status, and what it says when it did not do what was asked."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Mapping
from typing import Any


class Exit(enum.IntEnum):
    """Exit statuses; scripts rely on them, docs/reference/cli.md explains them."""

    OK = 0
    FAILED = 1
    """The bridge said no, or the action failed; what was asked has not happened."""
    USAGE = 2
    """The command line makes no sense (argparse's own status)."""
    UNREACHABLE = 3
    """No bridge answers, or it is not known where one is."""
    REFUSED = 4
    """The bridge does not accept the token."""
    UNKNOWN = 5
    """It may have happened, or may yet: look before trying again."""
    INTERRUPTED = 130


_OPEN = frozenset({"INTERNAL", "SHUTTING_DOWN", "STORE_UNAVAILABLE", "TIMEOUT", "UNCERTAIN"})
"""Codes that leave open what happened, unless `executed` says it."""


class CliError(Exception):
    """Raised when a command cannot do what was asked.

    `code` is the bridge's error code, or one of the command's own: UNREACHABLE, UNKNOWN,
    UNUSABLE (a file or a text that cannot be used). `members` is what `--json` prints.
    """

    def __init__(
        self, code: str, detail: str, exit_status: Exit, members: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.exit_status = exit_status
        self.members = {"code": code, "detail": detail, **(members or {})}


def of_document(document: Mapping[str, Any]) -> CliError:
    """The error that a problem document (RFC 9457) tells of."""
    code = str(document.get("code") or document.get("title") or "INTERNAL")
    detail = str(document.get("detail") or "the bridge gave no reason")
    return CliError(code, detail, _exit_status(code, document), document)


def _exit_status(code: str, document: Mapping[str, Any]) -> Exit:
    if code in {"UNAUTHORIZED", "FORBIDDEN"}:
        return Exit.REFUSED
    executed = document.get("executed")
    if executed in {True, "running"} or (executed is None and code in _OPEN):
        return Exit.UNKNOWN
    return Exit.FAILED


def tell(error: CliError, *, as_json: bool) -> None:
    """Say it: one JSON document on stdout, or a line for people on stderr."""
    if as_json:
        print(json.dumps(error.members, ensure_ascii=False))
        return
    lines = [f"deskbridge: {error.code}: {error.detail}"]
    if (after := error.members.get("retry_after")) is not None:
        lines.append(f"  try again in {after} s")
    if (action := error.members.get("action_id")) is not None:
        lines.append(f"  action {action}")
    lines += [f"  - {one}" for one in _particulars(error.members)]
    print("\n".join(lines), file=sys.stderr)


def _particulars(members: Mapping[str, Any]) -> list[str]:
    """What the document lists beside its sentence: candidates, or what is wrong with params."""
    found: list[str] = []
    for name in ("candidates", "errors"):
        listed = members.get(name)
        if isinstance(listed, list):
            found += [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)
                      for one in listed]  # fmt: skip
    return found
