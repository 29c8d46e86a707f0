"""Finding an app that somebody else started: by its window, never by its name alone.

A process is taken for the app only if the X server says that a window of this display is its,
and uid, display and command line fit. Unknown identity: it is left alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bridge.apps.base import LaunchSpec
from bridge.process import Identity, identify
from ui_backends.base import Reader, UiError


async def find_app(reader: Reader, display: str, spec: LaunchSpec) -> Identity | None:
    """The running app with a window on `display`; None when there is none, or not for sure."""
    try:
        windows = await reader.windows()
    except UiError:
        return None
    pids = sorted({w.pid for w in windows if w.pid is not None and w.managed})
    found = [identity for pid in pids if (identity := prove(pid, display, spec)) is not None]
    return found[0] if len(found) == 1 else None


def prove(pid: int, display: str, spec: LaunchSpec) -> Identity | None:
    """The process's identity if uid, display and command line are the app's."""
    identity = identify(pid)  # first: a pid that is used again meanwhile has another start time
    folder = Path("/proc") / str(pid)
    try:
        ours = folder.stat().st_uid == os.getuid()
        line = [part for part in _parts(folder / "cmdline") if part]
        env = dict(part.partition("=")[::2] for part in _parts(folder / "environ"))
        program = os.readlink(folder / "exe")
    except OSError:
        return None
    if not ours or not same_display(env, display) or not same_program(program, line, spec.argv):
        return None
    return identity if identity is not None and identify(pid) == identity else None


def _parts(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8", "surrogateescape").split("\0")


def same_display(env: Mapping[str, str], display: str) -> bool:
    """Whether a process's DISPLAY is this one; `:7` and `:7.0` are the same."""
    return env.get("DISPLAY", "").removesuffix(".0") == display.removesuffix(".0")


def same_program(program: str, line: Sequence[str], argv: Sequence[str]) -> bool:
    """Whether a process runs what `argv` would: same program, all of its arguments.

    `program` is the file it runs; a script's is its interpreter, then the name has to do.
    """
    if not line or not set(argv[1:]) <= set(line[1:]):
        return False
    wanted = shutil.which(argv[0])
    if wanted is not None and os.path.realpath(wanted) == program:
        return True
    return os.path.basename(line[0]) == os.path.basename(argv[0])
