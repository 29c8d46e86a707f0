"""Request headers and query values, parsed and bounded. Pure."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bridge.core_types import Filter
from bridge.errors import BridgeError
from bridge.model import State

MAX_WAIT = 300.0
"""Seconds that one request may wait."""

MAX_KEY = 191
MAX_PER_PAGE = 100
MAX_PAGE = 1_000_000

_VISIBLE = re.compile(r"[!-~]+")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_REQUEST_ID = re.compile(r"[!-~]{1,128}")
_ETAG = re.compile(r'(?:W/)?"?([0-9]{1,18})"?')
_SINCE = re.compile(r"([!-9;-~]{1,100}):([0-9]{1,18})")
_PREFERENCE = re.compile(
    r"""\s*(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)
        (?:\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<token>[^\s",;]*)))?
        (?P<rest>(?:\s*;(?:[^",;]|"(?:[^"\\]|\\.)*")*)*)\s*(?:,|$)""",
    re.VERBOSE,
)


def invalid(detail: str) -> BridgeError:
    """INVALID_REQUEST: nothing was done."""
    return BridgeError("INVALID_REQUEST", detail, executed=False)


@dataclass(frozen=True, slots=True)
class Prefer:
    """What a caller prefers (RFC 7240). `wait` in seconds."""

    respond_async: bool = False
    wait: float | None = None


def prefer(values: Iterable[str]) -> Prefer:
    """Parse all `Prefer` headers of a request.

    As the RFC has it, what is not understood is passed over and the first of two equal
    preferences counts. Raises INVALID_REQUEST for a wait that is too long.
    """
    known: dict[str, str] = {}
    for value in values:
        for name, argument in _preferences(value):
            known.setdefault(name, argument)
    wait = known.get("wait", "")
    seconds = float(wait) if re.fullmatch(r"[0-9]+", wait) else None
    if seconds is not None and seconds > MAX_WAIT:
        raise invalid(f"Prefer: wait takes at most {MAX_WAIT:.0f} seconds")
    return Prefer("respond-async" in known, seconds)


def _preferences(value: str) -> Iterable[tuple[str, str]]:
    """Name (lower case) and value of each preference of one header."""
    at = 0
    while at < len(value):
        match = _PREFERENCE.match(value, at)
        if match is None:
            at = value.find(",", at) + 1 or len(value)
            continue
        at = match.end()
        quoted = match["quoted"]
        argument = match["token"] or "" if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        yield match["name"].lower(), argument


def idempotency_key(value: str | None) -> str | None:
    """The key, None when there is none. Raises INVALID_REQUEST."""
    if value is None:
        return None
    if len(value) > MAX_KEY or not _VISIBLE.fullmatch(value):
        raise invalid(f"Idempotency-Key takes 1 to {MAX_KEY} visible ASCII characters")
    return value


def trace_id(request_id: str | None, traceparent: str | None) -> str:
    """The caller's request id, else the trace id of its trace context, else a new one."""
    if request_id is not None and _REQUEST_ID.fullmatch(request_id):
        return request_id
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match and set(match[1]) != {"0"}:
        return match[1]
    return uuid.uuid4().hex


def revision(if_match: str | None) -> int:
    """The revision that `If-Match` names, quoted or not. Raises REVISION_REQUIRED."""
    if if_match is None:
        raise BridgeError(
            "REVISION_REQUIRED",
            "send If-Match with the revision of the action that you looked at",
            executed=False,
        )
    match = _ETAG.fullmatch(if_match.strip())
    if match is None:
        raise invalid("If-Match takes one revision, a whole number")
    return int(match[1])


def since(value: str | None) -> tuple[str, int] | None:
    """`EPOCH:SEQ` taken apart. Raises INVALID_REQUEST."""
    if value is None:
        return None
    match = _SINCE.fullmatch(value)
    if match is None:
        raise invalid("since takes EPOCH:SEQ, as hello tells them")
    return match[1], int(match[2])


def seconds(value: str | None, name: str = "wait", most: float = MAX_WAIT) -> float:
    """A query value in seconds, 0 to `most`; 0 when it is missing. Raises INVALID_REQUEST."""
    if value is None:
        return 0.0
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value) or float(value) > most:
        raise invalid(f"{name} takes seconds from 0 to {most:.0f}")
    return float(value)


def number(name: str, value: str | None, default: int, most: int) -> int:
    """A whole number from 1 to `most`. Raises INVALID_REQUEST."""
    if value is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", value) or not 1 <= int(value) <= most:
        raise invalid(f"{name} takes a whole number from 1 to {most}")
    return int(value)


def words(values: Iterable[str], known: Iterable[str], name: str) -> frozenset[str]:
    """Names out of repeated or comma-separated values. Raises INVALID_REQUEST."""
    chosen = frozenset(word for value in values for word in value.split(",") if word)
    strange = chosen - frozenset(known)
    if strange:
        raise invalid(f"{name} does not know {', '.join(sorted(strange))}"[:300])
    return chosen


def filter_of(args: Mapping[str, list[str]], kinds: Iterable[str]) -> Filter:
    """The filter of a list, from the query's values by name. Raises INVALID_REQUEST."""
    strange = set(args) - {"state", "kind", "owner", "q", "page", "per_page"}
    if strange:
        raise invalid(f"unknown query value: {', '.join(sorted(strange))}"[:300])

    def last(name: str) -> str | None:
        return args[name][-1] if args.get(name) else None

    text = last("q") or None
    if text is not None and len(text) > 200:
        raise invalid("q takes at most 200 characters")
    return Filter(
        states=frozenset(State(word) for word in words(args.get("state", []), State, "state")),
        kinds=words(args.get("kind", []), kinds, "kind"),
        owner=last("owner") or None,
        text=text,
        page=number("page", last("page"), 1, MAX_PAGE),
        per_page=number("per_page", last("per_page"), 10, MAX_PER_PAGE),
    )
