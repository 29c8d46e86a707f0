"""Switch faults of a running demo app on and off: the wire, and the command.

    python -m bridge.demoapp.faults --state-dir DIR popup --on paste

One JSON object a line over the socket `<state>/demo/faults.sock`; the answer is one line
`{"ok": true, ...}` or `{"ok": false, "error": ...}` and comes before the fault strikes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.demoapp.journal import home

MOMENTS = ("now", "search", "paste", "before_return")
"""When a popup can appear: at once, when the search text changes, when text arrives in the
entry, or just before a Return reaches it."""

FAULTS = (
    "freeze",
    "crash",
    "popup",
    "slow",
    "too_frequent",
    "crash_after_return",
    "crash_before_journal",
    "offline",
)


@contextlib.contextmanager
def short_path(state_dir: Path) -> Iterator[str]:
    """The socket's path by way of an open folder: its length stays under the limit of 107."""
    folder = os.open(home(state_dir), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/faults.sock"
    finally:
        os.close(folder)


def switch(state_dir: Path, fault: str, *, timeout: float = 5.0, **options: Any) -> dict[str, Any]:
    """Switch a fault on or off and return the app's answer.

    Args:
        state_dir: the state directory the app was started with.
        fault: one of `FAULTS`.
        timeout: seconds to wait for the app; a frozen one does not answer.
        options: `seconds` (freeze), `on` (popup), `ms` (slow), `count` (too_frequent),
            `off` (offline, crash_after_return, crash_before_journal).

    Raises:
        OSError: no app listens there, or it did not answer in time.
        ValueError: the app refused the request.
    """
    return ask(state_dir, {"fault": fault, **options}, timeout=timeout)


def ask(state_dir: Path, request: Mapping[str, Any], *, timeout: float = 5.0) -> dict[str, Any]:
    """Hand the app one request and return its answer; raises as `switch` does."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(timeout)
        with short_path(state_dir) as path:
            peer.connect(path)
        peer.sendall(json.dumps(request).encode() + b"\n")
        line = peer.makefile("rb").readline()
    if not line:
        raise ConnectionResetError("the app closed the connection without an answer")
    answer: dict[str, Any] = json.loads(line)
    if not answer.get("ok"):
        raise ValueError(answer.get("error", "refused"))
    return answer


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bridge.demoapp.faults")
    parser.add_argument("--state-dir", type=Path, required=True)
    faults = parser.add_subparsers(dest="fault", required=True)
    faults.add_parser("freeze").add_argument("seconds", type=float)
    faults.add_parser("crash")
    faults.add_parser("popup").add_argument("--on", choices=MOMENTS, default="now")
    faults.add_parser("slow").add_argument("ms", type=int)
    faults.add_parser("too_frequent").add_argument("count", type=int, nargs="?", default=1)
    for name in ("crash_after_return", "crash_before_journal", "offline"):
        faults.add_parser(name).add_argument("--off", action="store_true")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 0 when the app took the fault, 1 when not."""
    options = vars(_parser().parse_args(argv))
    try:
        switch(options.pop("state_dir"), options.pop("fault"), **options)
    except (OSError, ValueError) as error:
        print(f"demo app: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
