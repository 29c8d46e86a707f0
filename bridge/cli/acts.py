"""The commands that have something done: `send` and `screenshot`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from bridge.cli.client import post
from bridge.cli.problem import CliError, Exit
from bridge.cli.target import Target
from bridge.kinds import SCREENSHOT, SEND_TEXT

_SUFFIXES = {"png": ".png", "jpeg": ".jpg"}


def send(options: Namespace, target: Target) -> Exit:
    """`deskbridge send`: a text for one contact."""
    key = options.key or uuid.uuid4().hex
    answer = post(
        target,
        f"/api{SEND_TEXT.path}",
        {"to": options.to, "text": _text(options.text)},
        headers={"Idempotency-Key": key, **_prefer(options)},
        wait=_wait(options, SEND_TEXT.wait_timeout_ms),
        lost=f"to be safe from sending twice, try again with --key {key}",
    )
    document = answer.json()
    if options.json:
        print(json.dumps(document, ensure_ascii=False))
    else:
        print(_told(document, answer.status_code))
    return Exit.OK


def _text(given: str) -> str:
    """The text itself, or for `-` what stdin holds, without the line end that closes it."""
    if given != "-":
        return given
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise CliError("UNUSABLE", f"stdin is not UTF-8: {error}", Exit.USAGE) from error
    return text.removesuffix("\n").removesuffix("\r")


def _prefer(options: Namespace) -> dict[str, str]:
    wishes = ["respond-async"] if options.respond_async else []
    if options.wait is not None:
        wishes.append(f"wait={options.wait}")
    return {"Prefer": ", ".join(wishes)} if wishes else {}


def _wait(options: Namespace, default_ms: int) -> float:
    if options.wait is not None:
        return float(options.wait)
    return 0.0 if options.respond_async else default_ms / 1000


def _told(document: Mapping[str, Any], status: int) -> str:
    action = document["action"]
    if status != httpx.codes.ACCEPTED:
        return f"sent (action {action['id']}, {_seconds(action)})"
    reason = (action.get("waiting") or {}).get("reason")
    why = f", waits: {reason}" if reason else ""
    return f"accepted: {action['state']}{why} (action {action['id']})"


def _seconds(action: Mapping[str, Any]) -> str:
    try:
        took = datetime.fromisoformat(action["finished_at"]) - datetime.fromisoformat(
            action["created_at"]
        )
    except (KeyError, TypeError, ValueError):
        return "time unknown"
    return f"{took.total_seconds():.1f} s"


def screenshot(options: Namespace, target: Target) -> Exit:
    """`deskbridge screenshot`: a picture into a file, or to stdout."""
    form = options.format or _format(options.file)
    to_stdout = options.file == "-"
    if to_stdout and (options.json or sys.stdout.isatty()):
        raise CliError("UNUSABLE", "a picture cannot go there; name a file", Exit.USAGE)
    body: dict[str, Any] = {"format": form}
    if options.window is not None:
        body["window"] = options.window
    if options.region is not None:
        body["region"] = options.region
    answer = post(
        target,
        f"/api{SCREENSHOT.path}",
        body,
        headers=_prefer(options),
        wait=_wait(options, SCREENSHOT.wait_timeout_ms),
        lost="try again",
    )
    if not answer.headers.get("Content-Type", "").startswith("image/"):
        raise CliError("UNUSABLE", "the bridge answered without a picture", Exit.FAILED)
    if to_stdout:
        sys.stdout.buffer.write(answer.content)
        sys.stdout.buffer.flush()
        return Exit.OK
    path = Path(options.file or f"screenshot-{datetime.now():%Y%m%d-%H%M%S}{_SUFFIXES[form]}")
    _write(path, answer.content)
    _tell_file(path, answer, as_json=options.json)
    return Exit.OK


def _format(file: str | None) -> str:
    return "jpeg" if file and Path(file).suffix.lower() in {".jpg", ".jpeg"} else "png"


def _write(path: Path, content: bytes) -> None:
    """Write the whole file or none of it; a file of that name is replaced."""
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as new:
            new.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(new.name, 0o666 & ~umask)
        os.replace(new.name, path)
    except OSError as error:
        detail = f"cannot write {path}: {error.strerror}"
        raise CliError("UNUSABLE", detail, Exit.FAILED) from error


def _tell_file(path: Path, answer: httpx.Response, *, as_json: bool) -> None:
    media_type = answer.headers["Content-Type"]
    if as_json:
        told = {
            "file": str(path),
            "bytes": len(answer.content),
            "media_type": media_type,
            "action": answer.headers.get("X-Action-Id"),
        }
        print(json.dumps(told, ensure_ascii=False))
    else:
        print(f"{path} ({len(answer.content):,} bytes, {media_type})")
