"""The catalogue of action kinds: params, defaults, what each needs, and where its route lies.

A kind is data. An app adapter says how a kind is carried out (its `flows`) and may bring kinds
of its own; routes, OpenAPI and the scheduler read what they need from here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from bridge.model import Effect, Need, Priority

DISPLAY_AND_APP = frozenset({Need.DISPLAY, Need.APP})
SIGNED_IN = frozenset({Need.DISPLAY, Need.APP, Need.SIGNED_IN})


class Params(BaseModel):
    """Base of every kind's params: unknown members are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of action.

    `path` is its POST route below `/api`; `contact_field` names the param that the pause
    between two texts looks at; `timeout` is the flow's deadline in seconds.
    """

    name: str
    title: str
    path: str
    params: type[Params]
    priority: Priority
    wait_timeout_ms: int
    effect: Effect
    needs: frozenset[Need]
    timeout: float = 30.0
    contact_field: str | None = None
    aliases: tuple[str, ...] = ()
    coalesce: Callable[[Mapping[str, Any]], str] | None = None
    picture: bool = False
    """The result is a picture; the waited answer is its bytes."""

    @property
    def signed_in(self) -> bool:
        """Whether actions of this kind belong to an account (else to the seat)."""
        return Need.SIGNED_IN in self.needs

    def contact(self, params: Mapping[str, Any]) -> str | None:
        """The contact a text goes to, None for other kinds."""
        return None if self.contact_field is None else params[self.contact_field]


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal params have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def request_hash(kind: str, params: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over the kind and the canonical params; equal for equal requests."""
    return hashlib.sha256(f"{kind}\n{canonical(params)}".encode()).hexdigest()


class SendText(Params):
    """A text for one contact."""

    to: str = Field(min_length=1, max_length=200, description="account id, remark or name, exactly")
    text: str = Field(min_length=1, max_length=100_000)


class ScreenRegion(Params):
    """A rectangle in pixels."""

    x: int = Field(ge=0)
    y: int = Field(ge=0)
    width: int = Field(gt=0)
    height: int = Field(gt=0)


class Screenshot(Params):
    """What to take a picture of; the whole screen by default."""

    window: str | None = Field(
        default=None, max_length=200, description="a window of the app, by its exact title"
    )
    region: ScreenRegion | None = None
    format: str = Field(default="png", pattern="^(png|jpeg)$")


class RestartApp(Params):
    """Stop the app and start it anew."""

    force: bool = Field(default=False, description="also while somebody signs in")


class Autofix(Params):
    """Mend what a check of the diagnosis found."""

    check: Literal["app_running", "app_window", "app_responding", "wechat_running", "keyboard"]


class Logout(Params):
    """Sign the account out."""


class CaptureQr(Params):
    """Take the QR code off the app's sign-in screen."""


SEND_TEXT = Kind(
    name="send_text",
    title="Send a text",
    path="/send/text",
    params=SendText,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
    contact_field="to",
)
SCREENSHOT = Kind(
    name="screenshot",
    title="Take a screenshot",
    path="/screenshot",
    params=Screenshot,
    priority=Priority.LOW,
    wait_timeout_ms=10_000,
    effect=Effect.READ,
    needs=DISPLAY_AND_APP,
    picture=True,
)
RESTART_APP = Kind(
    name="restart_app",
    title="Restart the app",
    path="/app/restart",
    aliases=("/wechat/restart",),
    params=RestartApp,
    priority=Priority.CRITICAL,
    wait_timeout_ms=60_000,
    effect=Effect.IDEMPOTENT,
    needs=frozenset({Need.DISPLAY}),
    timeout=60.0,
)
AUTOFIX = Kind(
    name="autofix",
    title="Mend what a check found",
    path="/diagnostic/autofix/{check}",
    params=Autofix,
    priority=Priority.CRITICAL,
    wait_timeout_ms=30_000,
    effect=Effect.IDEMPOTENT,
    needs=frozenset({Need.DISPLAY}),
    timeout=60.0,
)
LOGOUT = Kind(
    name="logout",
    title="Sign out",
    path="/login/logout",
    params=Logout,
    priority=Priority.HIGH,
    wait_timeout_ms=30_000,
    effect=Effect.IDEMPOTENT,
    needs=DISPLAY_AND_APP,
)
CAPTURE_QR = Kind(
    name="capture_qr",
    title="Show the sign-in code",
    path="/login/qr/start",
    params=CaptureQr,
    priority=Priority.HIGH,
    wait_timeout_ms=15_000,
    effect=Effect.READ,
    needs=DISPLAY_AND_APP,
)

CATALOGUE: Mapping[str, Kind] = {
    kind.name: kind for kind in (SEND_TEXT, SCREENSHOT, RESTART_APP, AUTOFIX, LOGOUT, CAPTURE_QR)
}
"""The kinds that every bridge knows, whether its app supports them or not."""
