"""The journal: what the demo app did, one JSON object a line. Its memory, and the ground truth.

Each line is written with one `write` and is on disk before its effect shows on the screen, so
an effect that the journal of an ended app does not show did not happen.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def home(state_dir: Path) -> Path:
    """The demo app's folder in the state directory."""
    return state_dir / "demo"


def path_in(state_dir: Path) -> Path:
    """Where the journal lies."""
    return home(state_dir) / "journal.jsonl"


class Journal:
    """The app's own journal, open for appending."""

    def __init__(self, state_dir: Path) -> None:
        home(state_dir).mkdir(parents=True, exist_ok=True)
        self._path = path_in(state_dir)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._end_torn_line()

    def _end_torn_line(self) -> None:
        """End a line that a power cut left unfinished, so that it does not spoil the next."""
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")

    def write(self, effect: str, **facts: Any) -> dict[str, Any]:
        """Add a line `{ts, effect, ...}`, bring it to disk, return it; `ts` is UTC milliseconds."""
        entry = {"ts": time.time_ns() // 1_000_000, "effect": effect, **facts}
        line = json.dumps(entry, ensure_ascii=False).encode() + b"\n"
        if os.write(self._file, line) != len(line):
            raise OSError(f"the journal {self._path} took only a part of a line")
        os.fdatasync(self._file)
        return entry

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def size(state_dir: Path) -> int:
    """The journal's length in bytes: a position that `entries` can start from."""
    try:
        return path_in(state_dir).stat().st_size
    except FileNotFoundError:
        return 0


def entries(state_dir: Path, start: int = 0) -> Iterator[dict[str, Any]]:
    """The whole lines from byte `start` on, oldest first; torn lines are left out."""
    try:
        file = path_in(state_dir).open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(start)
        for line in file:
            entry = _parsed(line)
            if entry is not None:
                yield entry


def _parsed(line: bytes) -> dict[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
