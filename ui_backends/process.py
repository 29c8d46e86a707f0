"""Running a command line tool under Trio so that nothing it does can hang the bridge.

The child leads a process group of its own. Its output is kept up to a limit; a grandchild that
holds the pipes open is not waited for. A child that overruns, or whose caller is cancelled, gets
SIGTERM, half a second, then SIGKILL, and is reaped before the call returns.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import trio

STATE_ID = "DESKBRIDGE_STATE_ID"
"""Name of the environment variable that marks an input command as one of ours."""

TOOLS = frozenset({"xdotool", "scrot"})
"""Executables that `end_leftovers` may end."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a child ended. `returncode` is negative for a signal.

    `held` tells that somebody still had the output open after the child was gone; `truncated`
    that there was more output than the limit.
    """

    returncode: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    held: bool
    truncated: bool


class _Sink:
    """Collects one stream up to `limit` bytes and reads on beyond it."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.truncated = False
        self.ended = trio.Event()
        self._limit = limit

    async def drink(self, stream: trio.abc.ReceiveStream) -> None:
        async with stream:
            async for chunk in stream:
                room = self._limit - len(self.data)
                self.data += chunk[:room]
                self.truncated |= len(chunk) > room
        self.ended.set()


async def run(
    argv: Sequence[str],
    *,
    timeout: float,
    env: Mapping[str, str],
    term_grace: float = 0.5,
    drain: float = 0.1,
    max_output: int = 64 << 20,
) -> Completed:
    """Run `argv` and return how it ended; never later than `timeout` + 2 × `term_grace` + `drain`.

    Raises OSError when it cannot be started. All times are seconds.
    """
    child = await trio.lowlevel.open_process(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env),
        process_group=0,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    out, err = _Sink(max_output), _Sink(64 << 10)
    clean = held = timed_out = False
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(out.drink, child.stdout)
            nursery.start_soon(err.drink, child.stderr)
            with trio.move_on_after(timeout) as scope:
                await child.wait()
            timed_out = scope.cancelled_caught
            if timed_out:
                await stop(child, term_grace)
            with trio.move_on_after(drain) as scope:
                await out.ended.wait()
                await err.ended.wait()
            held = scope.cancelled_caught
            nursery.cancel_scope.cancel()
        clean = not (timed_out or held)
    finally:
        if not clean:
            await stop(child, term_grace)
    return Completed(
        child.returncode, bytes(out.data), bytes(err.data), timed_out, held, out.truncated
    )


async def stop(child: trio.Process, term_grace: float = 0.5) -> None:
    """End the child's whole group and reap the child, shielded, within twice `term_grace`.

    A stopped child takes SIGTERM only once it goes on, hence SIGCONT.
    """
    with trio.CancelScope(shield=True):
        if child.returncode is None:
            _signal_group(child.pid, signal.SIGTERM)
            _signal_group(child.pid, signal.SIGCONT)
            with trio.move_on_after(term_grace):
                await child.wait()
        _signal_group(child.pid, signal.SIGKILL)
        if child.returncode is None:
            with trio.move_on_after(term_grace):
                await child.wait()


def _signal_group(leader: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def _is_leftover(pid: int, marker: bytes) -> bool:
    """Whether `pid` is an input command of ours; False when it cannot be looked at."""
    folder = Path("/proc") / str(pid)
    try:
        if folder.stat().st_uid != os.getuid():
            return False
        executable = (folder / "exe").readlink().name.removesuffix(" (deleted)")
        return executable in TOOLS and marker in (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


async def end_leftovers(state_id: str, *, timeout: float = 2.0) -> list[int]:
    """End the xdotool and scrot processes that an earlier run with this state id left behind.

    Only processes of our own user that carry the id in their environment. The descriptor is
    opened first and the process looked at (again) afterwards, so a reused pid is never hit.
    Returns the pids that were ended; waits at most `timeout` seconds for them to be gone.
    """
    marker = f"{STATE_ID}={state_id}".encode()
    ended = []
    with trio.move_on_after(timeout):
        for pid in _pids():
            if _is_leftover(pid, marker) and await _end(pid, marker):
                ended.append(pid)
    return ended


async def _end(pid: int, marker: bytes) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not _is_leftover(pid, marker) or select.select([descriptor], [], [], 0)[0]:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        await trio.lowlevel.wait_readable(descriptor)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
