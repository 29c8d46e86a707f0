"""Files that actions send: those in the allowed folders, and uploads, which are kept for a while.

An upload lies in `<state>/uploads/<sha256>/<name>` as long as an action may still need it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import trio

from bridge.errors import BridgeError
from bridge.kinds import Upload

T = TypeVar("T")

MAX_UPLOAD = 64 * 1024 * 1024
"""Bytes that one upload may have."""

MAX_UPLOADS = 512 * 1024 * 1024
"""Bytes that all uploads together may have."""

MAX_NAME = 255
"""Bytes that a file's name may have."""

CHUNK = 1024 * 1024

FRESH = 120.0
"""Seconds that an upload is kept although no action names it: its own may be on its way."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file as it was read: where it lies, its size in bytes, its SHA-256 (hex)."""

    path: Path
    size: int
    sha256: str


class OpenFile(Protocol):
    """Gives a flow the file that its params name, for as long as it holds the context."""

    def __call__(
        self, path: str | None, upload: Upload | None
    ) -> AbstractAsyncContextManager[LocalFile]:
        """INVALID_REQUEST outside the allowed folders, NOT_FOUND when it is not there."""
        ...


@asynccontextmanager
async def no_files(path: str | None, upload: Upload | None) -> AsyncIterator[LocalFile]:
    """For flows that run without a bridge around them."""
    raise BridgeError("UNSUPPORTED_BY_APP", "there are no files here", executed=False)
    yield


class Files:
    """The files of one bridge. `folders` are allowed; relative paths start in the first."""

    def __init__(self, state_dir: Path, folders: Sequence[Path]) -> None:
        self._uploads = state_dir / "uploads"
        self._folders = tuple(folders)
        self._limiter: trio.CapacityLimiter | None = None

    async def prepare(self) -> None:
        """Make the first allowed folder, and remove what an earlier run was just receiving."""
        await self._in_thread(_prepare, self._folders[0], self._uploads)

    @asynccontextmanager
    async def open(self, path: str | None, upload: Upload | None) -> AsyncIterator[LocalFile]:
        """See `OpenFile`."""
        if upload is not None:
            where = self._uploads / upload.sha256 / upload.name
        else:
            where = await self._in_thread(_allowed, path or "", self._folders)
        found = await self._in_thread(_read, where)
        if found is None:
            name = upload.name if upload else path
            raise BridgeError("NOT_FOUND", f"the file {name!r} is not there", executed=False)
        if upload is not None and found.sha256 != upload.sha256:
            raise BridgeError("NOT_FOUND", "the upload has changed on disk", executed=False)
        yield found

    async def receive(self, name: str, chunks: AsyncIterable[bytes]) -> Upload:
        """Keep an upload, whole or not at all. PAYLOAD_TOO_LARGE, RATE_LIMITED, INVALID_REQUEST."""
        name = plain_name(name)
        part = self._uploads / f"{secrets.token_hex(8)}.part"
        digest, size = hashlib.sha256(), 0
        room = MAX_UPLOADS - await self._in_thread(_size_of, self._uploads)
        try:
            file = await self._in_thread(part.open, "xb")
            try:
                async for chunk in chunks:
                    digest.update(chunk)
                    size += len(chunk)
                    if size > MAX_UPLOAD:
                        raise BridgeError(
                            "PAYLOAD_TOO_LARGE",
                            f"a file may have {MAX_UPLOAD // 2**20} MiB; put larger ones into "
                            "an allowed folder and send their path",
                            executed=False,
                        )
                    if size > room:
                        raise BridgeError(
                            "RATE_LIMITED",
                            "the uploads that wait fill their place; try again soon",
                            retry_after=60,
                            executed=False,
                        )
                    await self._in_thread(file.write, chunk)
            finally:
                file.close()
            upload = Upload(name=name, size=size, sha256=digest.hexdigest())
            await self._in_thread(_keep, part, self._uploads / upload.sha256 / name)
            return upload
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()

    async def expire(self, needed: Collection[str]) -> None:
        """Remove the uploads whose SHA-256 is not `needed`, unless they have just come."""
        await self._in_thread(_expire, self._uploads, frozenset(needed), time.time() - FRESH)

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        if self._limiter is None:
            self._limiter = trio.CapacityLimiter(2)
        return await trio.to_thread.run_sync(work, *args, limiter=self._limiter)


def plain_name(name: str) -> str:
    """The name of an uploaded file without folders. INVALID_REQUEST when none is left."""
    last = name.replace("\\", "/").rpartition("/")[2]
    if last in {"", ".", ".."} or "\0" in last or len(last.encode(errors="replace")) > MAX_NAME:
        detail = f"the file needs a name of at most {MAX_NAME} bytes"
        raise BridgeError("INVALID_REQUEST", detail, executed=False)
    return last


def _allowed(path: str, folders: Sequence[Path]) -> Path:
    """The real file behind a path. INVALID_REQUEST, NOT_FOUND."""
    try:
        real = (folders[0] / path).resolve(strict=True)
    except FileNotFoundError as error:
        raise BridgeError("NOT_FOUND", f"there is no file {path!r}", executed=False) from error
    except (OSError, ValueError, RuntimeError) as error:
        detail = f"the path {path[:100]!r} cannot be used: {error}"
        raise BridgeError("INVALID_REQUEST", detail, executed=False) from error
    if not any(real.is_relative_to(folder.resolve()) for folder in folders):
        raise BridgeError(
            "INVALID_REQUEST",
            f"files come from {', '.join(map(str, folders))}; put it there or upload it",
            executed=False,
        )
    if not real.is_file():
        raise BridgeError("INVALID_REQUEST", f"{path!r} is not a file", executed=False)
    return real


def _read(path: Path) -> LocalFile | None:
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except OSError:
        return None
    return LocalFile(path, size, digest.hexdigest())


def _prepare(outbox: Path, uploads: Path) -> None:
    outbox.mkdir(parents=True, exist_ok=True)
    uploads.mkdir(parents=True, exist_ok=True)
    for part in uploads.glob("*.part"):
        part.unlink(missing_ok=True)


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _keep(part: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    part.replace(target)
    os.utime(target.parent)


def _expire(uploads: Path, needed: frozenset[str], before: float) -> None:
    for folder in uploads.iterdir():
        if folder.is_dir() and folder.name not in needed and folder.stat().st_mtime < before:
            shutil.rmtree(folder, ignore_errors=True)
