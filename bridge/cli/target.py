"""Which bridge a command talks to: its address and token."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from bridge.cli.problem import CliError, Exit
from bridge.config import Settings, SettingsError


@dataclass(frozen=True, slots=True)
class Target:
    """A bridge. `base` has no slash at its end."""

    base: str
    token: str

    @property
    def websocket(self) -> str:
        """The base address of its WebSockets."""
        return "ws" + self.base.removeprefix("http")

    @property
    def local(self) -> bool:
        """Whether it is on this machine; a proxy would only be in the way then."""
        host = urlsplit(self.base).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What the command line says of the bridge; None where it says nothing."""

    url: str | None = None
    token: str | None = None
    state_dir: str | None = None

    def find(self, env: Mapping[str, str] = os.environ) -> Target:
        """Look it up: option, else environment, else the files of the state directory.

        Raises CliError.
        """
        state = self._state_dir(env)
        url = self.url or env.get("DESKBRIDGE_URL") or _local_address(state)
        token = self.token or env.get("DESKBRIDGE_TOKEN") or _read(state / "token", "token")
        return Target(_checked(url), token)

    def _state_dir(self, env: Mapping[str, str]) -> Path:
        if self.state_dir is not None:
            return Path(self.state_dir).absolute()
        try:
            return Settings.from_env(env).state_dir
        except SettingsError as error:
            raise CliError("UNUSABLE", str(error), Exit.USAGE) from error


def _local_address(state: Path) -> str:
    return f"http://127.0.0.1:{_read(state / 'port', 'port')}"


def _read(path: Path, what: str) -> str:
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        detail = f"there is no {path}: is the bridge running? Else name its {what} by option"
        raise CliError("UNREACHABLE", detail, Exit.UNREACHABLE) from None
    except OSError as error:
        detail = f"cannot read {path}: {error.strerror}"
        raise CliError("UNREACHABLE", detail, Exit.UNREACHABLE) from error
    return text


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query:
        detail = f"{url!r} is no address of a bridge; one is http://127.0.0.1:8655"
        raise CliError("UNUSABLE", detail, Exit.USAGE)
    return url.rstrip("/")
