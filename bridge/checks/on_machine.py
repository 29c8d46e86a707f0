"""Locale, fonts and disk: what they are on this machine, and whether that will do."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import trio

from bridge.checks.result import Fault, Result, judged
from bridge.model import Json
from bridge.store import StoreHealth
from ui_backends.process import run

TOOL_TIME = 3.0
"""Seconds that `locale` or `fc-list` may take."""

LITTLE = 1 << 30
"""Free bytes from which on the disk is worth a warning: evidence alone may take half of it."""

TOO_LITTLE = 100 << 20
"""Free bytes from which on the next write may fail."""

FEW_FILES = 1_000
"""Files that can still be made, from which on it is worth a warning."""


# -- locale ------------------------------------------------------------------------------


def locale_of(env: Mapping[str, str]) -> str:
    """The locale of a program's characters, by its environment."""
    names = (env.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next((name for name in names if name), "C")


def environment_of(pid: int) -> dict[str, str] | None:
    """A process's environment as it was at its start; None when it cannot be read."""
    try:
        text = (Path("/proc") / str(pid) / "environ").read_bytes().decode(errors="replace")
    except OSError:
        return None
    pairs = (part.partition("=") for part in text.split("\0") if "=" in part)
    return {name: value for name, _, value in pairs}


async def installed_locales(env: Mapping[str, str]) -> frozenset[str] | None:
    """What `locale -a` lists; None when it cannot be asked."""
    told = await _output(["locale", "-a"], env)
    return None if told is None else frozenset(told.split())


def locale(bridge: str, app: str | None, installed: Collection[str] | None) -> Result:
    """Whether texts and file names survive; `app` is None when no app runs."""
    faults = []
    for who, name, status in (("the bridge", bridge, "warning"), ("the app", app, "failed")):
        if name is not None and (wrong := _wrong(name, installed)) is not None:
            faults.append(
                Fault(
                    "failed" if status == "failed" else "warning",
                    f"the locale of {who} is {name}: {wrong}",
                    f"start {who} with LC_ALL=C.UTF-8, or another UTF-8 locale of `locale -a`",
                )
            )
    data: dict[str, Json] = {"bridge": bridge, "app": app}
    return judged("locale", faults, " · ".join(n for n in (bridge, app) if n), data)


def _wrong(name: str, installed: Collection[str] | None) -> str | None:
    """Why a locale will not do; None if it does."""
    if name in {"C", "POSIX"}:
        return "it knows ASCII only, other texts and file names are lost"
    if _normal(name).partition(".")[2] != "utf8":
        return "its characters are not UTF-8"
    if installed is not None and _normal(name) not in {_normal(one) for one in installed}:
        return "it is not installed, so programs fall back to C"
    return None


def _normal(name: str) -> str:
    """`zh_CN.UTF-8@x` and `zh_CN.utf8` are written the same."""
    language, _, charset = name.partition("@")[0].partition(".")
    return f"{language}.{charset.lower().replace('-', '')}"


# -- fonts -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fonts:
    """How many font families there are for Chinese, and for emoji."""

    cjk: int
    emoji: int


async def fonts_there(env: Mapping[str, str]) -> Fonts | None:
    """Ask fontconfig; None when it cannot be asked."""
    cjk = await _output(["fc-list", ":lang=zh-cn", "family"], env)
    emoji = await _output(["fc-list", ":charset=1f389", "family"], env)
    if cjk is None or emoji is None:
        return None
    return Fonts(_lines(cjk), _lines(emoji))


def _lines(text: str) -> int:
    return len({line for line in text.splitlines() if line.strip()})


def fonts(there: Fonts | None) -> Result:
    """Without them the app draws boxes; what is sent is right all the same."""
    if there is None:
        return Result(
            "fonts",
            "warning",
            "fontconfig cannot be asked which fonts there are",
            "install it: apt-get install fontconfig",
        )
    faults = [
        Fault("warning", f"no font for {what}: pictures show boxes", f"apt-get install {package}")
        for what, count, package in (
            ("Chinese, Japanese and Korean", there.cjk, "fonts-noto-cjk"),
            ("emoji", there.emoji, "fonts-noto-color-emoji"),
        )
        if not count
    ]
    data: dict[str, Json] = {"cjk": there.cjk, "emoji": there.emoji}
    return judged("fonts", faults, "fonts for CJK and emoji are there", data)


# -- disk --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of the state directory. `write_error` is None when it takes a write."""

    free: int
    total: int
    files_free: int
    write_error: str | None


async def disk_of(folder: Path) -> Disk:
    """Look at the file system, and write and remove a small file. Raises OSError."""
    return await trio.to_thread.run_sync(_disk, folder, abandon_on_cancel=True)


def _disk(folder: Path) -> Disk:
    # Before its first start the directory is not there yet: then its nearest parent is looked at.
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    usage, system = shutil.disk_usage(folder), os.statvfs(folder)
    # Some file systems have no fixed number of files and say 0.
    files = system.f_favail if system.f_files else FEW_FILES
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".deskbridge-") as file:
            file.write(b"deskbridge was here\n" * 64)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return Disk(usage.free, usage.total, files, error.strerror or str(error))
    return Disk(usage.free, usage.total, files, None)


def disk(folder: Path, found: Disk) -> Result:
    """Whether the queue can go on being written."""
    faults = []
    free = f"{found.free / (1 << 20):,.0f} MiB free"
    if found.write_error is not None:
        faults.append(
            Fault(
                "failed",
                f"{folder} takes no write: {found.write_error}",
                "give this user the right to write there, free space, or name another directory "
                "with DESKBRIDGE_STATE_DIR",
            )
        )
    if found.free < LITTLE:
        faults.append(
            Fault(
                "failed" if found.free < TOO_LITTLE else "warning",
                f"the disk of {folder} is nearly full: {free}",
                "free space there; when it is full nothing can be accepted any more",
            )
        )
    if found.files_free < FEW_FILES:
        faults.append(
            Fault(
                "warning",
                f"the file system of {folder} takes only {found.files_free} more files",
                "remove files there that nobody needs",
            )
        )
    data: dict[str, Json] = {
        "folder": str(folder),
        "free_bytes": found.free,
        "total_bytes": found.total,
        "writable": found.write_error is None,
    }
    return judged("disk", faults, f"{folder}: {free}", data)


def store(found: StoreHealth) -> Result:
    """Whether the queue's database answers and is whole."""
    data: dict[str, Json] = {
        "database": found.database,
        "epoch": found.epoch,
        "damage": list(found.damage),
        "looked_through": found.whole,
    }
    if found.damage:
        return Result(
            "store",
            "failed",
            f"the database is damaged: {found.damage[0]}",
            "stop the bridge, keep a copy of the file, and bring back a backup",
            data,
        )
    extent = "" if found.whole else ", not looked through to its end"
    return Result("store", "ok", f"{found.database} answers{extent}", None, data)


async def _output(argv: list[str], env: Mapping[str, str]) -> str | None:
    """A tool's standard output; None when it is not there, failed, or took too long."""
    kept = {name: env[name] for name in ("PATH", "HOME", "TMPDIR") if name in env}
    try:
        done = await run(argv, timeout=TOOL_TIME, env={"PATH": os.defpath, **kept})
    except OSError:
        return None
    if done.timed_out or done.returncode != 0:
        return None
    return done.stdout.decode(errors="replace")
