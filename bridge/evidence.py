"""Pictures kept beside an action: what the screen showed before and after."""

from __future__ import annotations

import contextlib
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio
from PIL import Image

T = TypeVar("T")

_SAFE = re.compile(r"[a-z0-9_-]+")


class Evidence:
    """Pictures in `<folder>/<action id>/<name>.png`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._limiter: trio.CapacityLimiter | None = None

    def path(self, action_id: str, name: str) -> Path:
        """Where a picture lies; ValueError for a name that is none."""
        if not (_SAFE.fullmatch(action_id) and _SAFE.fullmatch(name)):
            raise ValueError(f"not an evidence name: {action_id!r}/{name!r}")
        return self._folder / action_id / f"{name}.png"

    async def save(self, action_id: str, name: str, picture: Image.Image) -> str:
        """Write a picture (whole or not at all) and return its name."""
        path = self.path(action_id, name)
        await self._in_thread(_write, picture, path)
        return name

    async def load(self, action_id: str, name: str) -> Image.Image | None:
        """Read a picture back; None when it is gone."""
        return await self._in_thread(_read, self.path(action_id, name))

    async def remove(self, action_id: str) -> None:
        """Forget an action's pictures."""
        folder = self.path(action_id, "x").parent
        await self._in_thread(lambda: shutil.rmtree(folder, ignore_errors=True))

    async def expire(self, name: str, age: float) -> None:
        """Remove the pictures called `name` that are older than `age` seconds."""
        await self._in_thread(_expire, self._folder, f"{name}.png", time.time() - age)

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        if self._limiter is None:
            self._limiter = trio.CapacityLimiter(2)
        return await trio.to_thread.run_sync(work, *args, limiter=self._limiter)


def _write(picture: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    picture.save(part, format="PNG", compress_level=1)
    part.replace(path)


def _read(path: Path) -> Image.Image | None:
    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except (OSError, ValueError):
        return None


def _expire(folder: Path, file_name: str, before: float) -> None:
    for path in folder.glob(f"*/{file_name}"):
        if path.stat().st_mtime < before:
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # other pictures of the action may stay
                path.parent.rmdir()
