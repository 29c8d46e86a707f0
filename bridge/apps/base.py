"""What an app adapter is: how to start the app, read its state, tidy it and carry out kinds.

A new app is one module that defines an `Adapter` and one entry point in the group
`deskbridge.apps`. Everything an adapter does on the screen goes through the `Hands` it is
given (`bridge.hands`), so every command is one logged step under the display lock.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bridge.kinds import Kind
from bridge.model import Json, LoginState

if TYPE_CHECKING:
    from bridge.flow import Flow
    from bridge.hands import Eyes, Hands


@dataclass(frozen=True, slots=True)
class AppSettings:
    """What an adapter may rely on when it is made. `env` is the bridge's own environment."""

    state_dir: Path
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """How to start the app: an argument list (never a shell), extra environment, folder.

    The environment already holds DISPLAY, a UTF-8 locale and HOME; `env` is added to it.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    session_bus: bool = False
    """Give it a D-Bus session of its own, the same one over restarts; the accessibility reader
    reads by way of it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the app's sign-in state. `account` is set when an account is seen."""

    state: LoginState
    account: str | None = None
    evidence: Mapping[str, Json] = field(default_factory=dict)


class Found(enum.Enum):
    """What a verifier concluded."""

    DONE = "done"
    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verifier's conclusion; `result` is the action's result when it was done."""

    found: Found
    result: Mapping[str, Json] = field(default_factory=dict)
    evidence: Mapping[str, Json] = field(default_factory=dict)


class Adapter(Protocol):
    """One app. Made once per seat by a factory `(AppSettings) -> Adapter`."""

    name: str
    durable_history: bool
    """The app writes its history before an effect leaves it, so that after its death an effect
    which the history does not show did not happen."""

    flows: Mapping[str, Flow[Any]]
    """How each supported kind is carried out, by the kind's name."""

    kinds: Mapping[str, Kind]
    """Kinds of this app's own, beside the catalogue."""

    def launch(self) -> LaunchSpec:
        """How to start the app, and how a running one is known. Changes nothing."""
        ...

    def prepare(self) -> None:
        """Write what the app must find; called right before a start, never while it runs."""
        ...

    async def probe(self, eyes: Eyes) -> Reading:
        """Read the sign-in state off the windows and the screen. Changes nothing."""
        ...

    async def clean_screen(self, hands: Hands) -> None:
        """Bring the app to its known screen: menus, dialogs and searches closed, entry empty.

        Raises BridgeError when it cannot.
        """
        ...
