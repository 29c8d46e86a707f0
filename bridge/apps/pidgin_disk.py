"""Reads Pidgin's folder and, of its process, which logs it holds open. Small and blocking.

Whether Pidgin is signed in is read off the process: it opens the account's system log when the
connection stands and closes it when the connection ends, in whatever language and theme.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.apps.pidgin_files import Account, Contact, find_said, parse_accounts, parse_buddies
from bridge.model import Json

KEPT = 20
"""Log files whose size a mark notes; older ones are told by their time."""


def read_accounts(folder: Path) -> list[Account]:
    """The accounts; none while Pidgin has written no file. ValueError, OSError."""
    try:
        return parse_accounts((folder / "accounts.xml").read_text("utf-8"))
    except FileNotFoundError:
        return []


def read_contacts(folder: Path, account: Account) -> list[Contact]:
    """The account's buddies; none while Pidgin has written no file. ValueError, OSError."""
    try:
        return parse_buddies((folder / "blist.xml").read_text("utf-8"), account)
    except FileNotFoundError:
        return []


def log_folder(folder: Path, account: Account, name: str) -> Path:
    """Where Pidgin logs what passes between `account` and `name`."""
    return folder / "logs" / account.protocol.removeprefix("prpl-") / account.jid / name


def signed_on(pid: int, folder: Path, account: Account) -> bool | None:
    """Whether process `pid` is connected as `account`; None when the process cannot be read."""
    wanted = os.path.realpath(log_folder(folder, account, ".system"))
    try:
        descriptors = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return None
    return any(_parent(descriptor) == wanted for descriptor in descriptors)


def _parent(descriptor: Path) -> str | None:
    try:
        return os.path.dirname(os.readlink(descriptor))
    except OSError:
        return None


def process_age(pid: int) -> float | None:
    """Seconds since `pid` was started, by the clock that runs on while suspended; None: gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        up = float(Path("/proc/uptime").read_text("utf-8").split()[0])
    except (OSError, ValueError):
        return None
    return up - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def log_position(folder: Path) -> Mapping[str, Json]:
    """Where a conversation's logs end now, for `said_since`."""
    stats = sorted(
        ((path.stat(), path.name) for path in folder.glob("*.txt")),
        key=lambda item: (item[0].st_mtime_ns, item[1]),
    )
    kept = stats[-KEPT:]
    return {
        "sizes": {name: stat.st_size for stat, name in kept},
        "before": kept[0][0].st_mtime_ns if len(stats) > KEPT else 0,
    }


@dataclass(frozen=True, slots=True)
class Said:
    """A record found in a log: `id` is the file and the offset of the mark it lies behind."""

    id: str
    count: int


def said_since(
    folder: Path, position: Mapping[str, Json], text: str, names: frozenset[str]
) -> Said | None:
    """Whether the logs say `text` behind `position`. OSError when they cannot be read."""
    sizes: Mapping[str, int] = position["sizes"]
    for path in sorted(folder.glob("*.txt")):
        begin = sizes.get(path.name, 0)
        stat = path.stat()
        if stat.st_size <= begin:
            continue
        if path.name not in sizes and stat.st_mtime_ns < position["before"]:
            continue
        with path.open("rb") as log:
            log.seek(begin)
            piece = log.read().decode("utf-8", errors="replace")
        found = find_said(piece, text, names)
        if found:
            offset = begin + len(piece[: found[0]].encode())
            return Said(f"{path.stem}:{offset}", len(found))
    return None
