"""A lock on a file beside the database: one bridge per database file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyHeld(Exception):
    """Raised when another process holds the lock; `holder` is its pid as far as it is known."""

    def __init__(self, path: Path, holder: str) -> None:
        who = f"process {holder}" if holder else "another process"
        super().__init__(f"{path} is held by {who}: a bridge works on this database already")
        self.path = path
        self.holder = holder


class LockLost(Exception):
    """Raised when the lock's file is no longer the one that is held."""


class FileLock:
    """A lock that is held until its descriptor is closed, or its process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def check(self) -> None:
        """Raise LockLost unless the path still is the file that is locked."""
        held = os.fstat(self._descriptor)
        try:
            there = os.stat(self._path)
        except OSError as error:
            raise LockLost(f"{self._path} is gone: {error}") from error
        if (held.st_dev, held.st_ino) != (there.st_dev, there.st_ino):
            raise LockLost(f"{self._path} was replaced by another file")


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    return text if text.isdigit() else ""


@contextmanager
def hold_flock(path: Path) -> Iterator[FileLock]:
    """Hold the lock at `path`, which is made if need be and never removed.

    Raises AlreadyHeld at once when another process holds it. The descriptor is not inherited by
    programs that are started meanwhile, so nothing outlives the holder and keeps the lock.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyHeld(path, _holder(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        lock = FileLock(path, descriptor)
        lock.check()  # removed between opening and locking: then it guards nothing
        yield lock
    finally:
        os.close(descriptor)
