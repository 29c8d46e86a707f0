"""Files that a person chooses: where they lie, how large they are, and what is in them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChosenFile:
    """A file as it was read: name, size in bytes, SHA-256 (hex)."""

    name: str
    size: int
    sha256: str


def chosen_file(location: str) -> ChosenFile | None:
    """Read the file behind a `file:` URI; None when there is none."""
    parts = urlsplit(location)
    if parts.scheme != "file":
        return None
    path = Path(unquote(parts.path))
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                size += len(chunk)
    except (OSError, ValueError):
        return None
    return ChosenFile(path.name, size, digest.hexdigest())
