"""What a kind is: its params, its defaults, what it needs, and where its route lies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from bridge.model import Effect, Need, Priority

DISPLAY_AND_APP = frozenset({Need.DISPLAY, Need.APP})
SIGNED_IN = frozenset({Need.DISPLAY, Need.APP, Need.SIGNED_IN})


class Params(BaseModel):
    """Base of every kind's params: unknown members are an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Act(Params):
    """Params of a kind that does something in somebody's name."""

    dry_run: bool = Field(
        default=False,
        description="do all of it but the last key: the exact target is found and looked at again",
    )

    @model_serializer(mode="wrap")
    def _without_the_usual(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `dry_run` out where it is false: two ways to say one thing are one request."""
        members: dict[str, Any] = handler(self)
        if not members.get("dry_run"):
            members.pop("dry_run", None)
        return members


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of action.

    `path` is its POST route below `/api`; `contact_field` names the param that the pause
    between two texts looks at; `timeout` is the flow's deadline in seconds. `coalesce` and `key`
    make the coalesce key and the idempotency key of a request that brings none, from its params.
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
    coalesce: Callable[[Mapping[str, Any]], str | None] | None = None
    key: Callable[[Mapping[str, Any]], str | None] | None = None
    picture: bool = False
    """The result is a picture; the waited answer is its bytes."""
    upload: str | None = None
    """The param that an uploaded file becomes, where the route takes multipart bodies."""

    @property
    def signed_in(self) -> bool:
        """Whether actions of this kind belong to an account (else to the seat)."""
        return Need.SIGNED_IN in self.needs

    def contact(self, params: Mapping[str, Any]) -> str | None:
        """The contact a text goes to, None for other kinds."""
        return None if self.contact_field is None else params[self.contact_field]


def per_target(kind: str, field: str) -> Callable[[Mapping[str, Any]], str | None]:
    """A key `kind:target` from one param; None for a dry run, which must not replace a real one."""

    def key(params: Mapping[str, Any]) -> str | None:
        return None if params.get("dry_run") else f"{kind}:{params[field]}"

    return key


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal params have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def request_hash(kind: str, params: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over the kind and the canonical params; equal for equal requests."""
    return hashlib.sha256(f"{kind}\n{canonical(params)}".encode()).hexdigest()
