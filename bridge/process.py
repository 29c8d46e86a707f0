"""Processes that outlive a call: who they are, whether they live, and how they are ended.

Only a proven process is signalled: a pidfd is opened first, then start time and boot id are
compared with the record; a pid that was given to somebody else is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import trio


@dataclass(frozen=True, slots=True)
class Identity:
    """A process as the kernel knows it: the pid alone may be used again.

    `start_ticks` is field 22 of /proc/pid/stat (clock ticks since boot).
    """

    pid: int
    start_ticks: int
    boot_id: str


def boot_id() -> str:
    """The kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> Identity | None:
    """The identity of a living process; None when it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    return Identity(pid, int(fields[19]), boot_id())


def descendants(pid: int) -> set[int]:
    """The living processes that `pid` started, directly or not."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := _parent(folder)) is not None:
            children.setdefault(parent, []).append(int(folder.name))
    found: set[int] = set()
    open_ends = [pid]
    while open_ends:
        for child in children.get(open_ends.pop(), []):
            if child not in found:
                found.add(child)
                open_ends.append(child)
    return found


def _parent(folder: Path) -> int | None:
    try:
        stat = (folder / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return int(stat[stat.rindex(")") + 2 :].split()[1])


class Record:
    """A process written down in the state directory, so that a later run finds it again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, identity: Identity, **facts: str | int) -> None:
        """Remember a process and some facts about it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps({"identity": asdict(identity), **facts}))
        part.replace(self._path)

    def read(self) -> tuple[Identity, Mapping[str, str | int]] | None:
        """The remembered process, if it still is the same one and alive."""
        try:
            data = json.loads(self._path.read_text())
            recorded = Identity(**data.pop("identity"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return (recorded, data) if identify(recorded.pid) == recorded else None

    def clear(self) -> None:
        """Forget it."""
        self._path.unlink(missing_ok=True)


class Child:
    """A process of ours, started now or by an earlier run, in a process group of its own."""

    def __init__(
        self, identity: Identity, pidfd: int, popen: subprocess.Popen[bytes] | None
    ) -> None:
        self.identity = identity
        self._pidfd = pidfd
        self._popen = popen

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid

    @classmethod
    def adopt(cls, identity: Identity) -> Child | None:
        """Take charge of a running process; None when it is not that one (any more)."""
        try:
            pidfd = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            return None
        if identify(identity.pid) != identity:
            os.close(pidfd)
            return None
        return cls(identity, pidfd, None)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log_file: Path,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Child:
        """Start a process in a session of its own; its output goes to `log_file`.

        Raises FileNotFoundError when the program is not there.
        """
        log_file.parent.mkdir(parents=True, exist_ok=True)
        with log_file.open("ab") as output:
            popen = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(env),
                cwd=cwd,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        pidfd = os.pidfd_open(popen.pid)
        identity = identify(popen.pid)
        if identity is None:  # it ended at once; keep what is known of it
            identity = Identity(popen.pid, 0, boot_id())
        return cls(identity, pidfd, popen)

    def alive(self) -> bool:
        """Whether it still runs; asks the kernel, never blocks."""
        if self._pidfd < 0:
            return False
        readable, _, _ = select.select([self._pidfd], [], [], 0)
        return not readable

    async def ended(self) -> None:
        """Wait for its end."""
        if self._pidfd >= 0:
            await trio.lowlevel.wait_readable(self._pidfd)
        self.wait()

    def wait(self) -> None:
        """Take an ended child's status off the kernel; blocks while it lives."""
        if self._popen is not None:
            self._popen.wait()

    def signal(self, number: int) -> bool:
        """Signal its group while it lives; False when it is gone."""
        if not self.alive():
            return False
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            # an adopted process need not lead a group of its own
            return self._signal_alone(number)
        except OSError as error:
            if error.errno != errno.EPERM:
                raise
            return self._signal_alone(number)
        return True

    def _signal_alone(self, number: int) -> bool:
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            return False
        return True

    async def stop(self, grace: float = 2.0, kill_grace: float = 2.0) -> bool:
        """TERM, then KILL after `grace` seconds; True once it is gone. Shielded and bounded.

        A stopped process is not continued: it would first do what its queued input says.
        """
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, kill_grace)):
            self.signal(number)
            with trio.move_on_after(patience, shield=True):
                await self.ended()
                return True
        return False

    def close(self) -> None:
        """Give the handle back; the process goes on."""
        if self._pidfd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._pidfd)
            self._pidfd = -1
