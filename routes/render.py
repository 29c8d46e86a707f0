"""Actions, kinds and events as the JSON that the outside sees."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bridge.kinds import Kind
from bridge.model import Action, Event, Json, Step

_HIDDEN = frozenset({"fence", "pid", "launch", "launch_id"})
_TIMES = ("not_before", "expires_at", "start_by", "created_at", "started_at", "finished_at")
_PLAIN = (
    *("id", "seat", "owner", "kind", "attempt", "max_attempts", "idempotency_key"),
    *("coalesce_key", "batch_id", "delay_ms", "revision", "trace_id"),
)


def when(ms: int | None) -> str | None:
    """UTC milliseconds as RFC 3339, such as `2026-01-31T12:00:00.250Z`."""
    if ms is None:
        return None
    seconds, rest = divmod(ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"


def shown(value: Json) -> Json:
    """`value` without what tells about processes and leases, at any depth."""
    if isinstance(value, Mapping):
        return {key: shown(item) for key, item in value.items() if key not in _HIDDEN}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value


def step(step: Step) -> dict[str, Json]:
    """One UI command of a flow."""
    return {
        "name": step.name,
        "at": when(step.at),
        "ms": step.ms,
        "ok": step.ok,
        "detail": step.detail,
    }


def action(action: Action, waiting: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """An action; with `waiting` while it waits."""
    body: dict[str, Json] = {name: getattr(action, name) for name in _PLAIN}
    body |= {name: when(getattr(action, name)) for name in _TIMES}
    body |= {
        "params": dict(action.params),
        "priority": action.priority.name,
        "state": action.state.value,
        "effect": action.effect.value,
        "steps": [step(done) for done in action.steps],
        "evidence": shown(action.evidence),
        "result": None if action.result is None else dict(action.result),
        "error": shown(action.error),
    }
    if waiting is not None:
        body["waiting"] = {
            name: when(value) if name in {"until", "eta"} and isinstance(value, int) else value
            for name, value in waiting.items()
        }
    return body


def kind(kind: Kind, *, supported: bool) -> dict[str, Json]:
    """A kind as the list of kinds shows it."""
    return {
        "kind": kind.name,
        "title": kind.title,
        "path": f"/api{kind.path}",
        "priority": kind.priority.name,
        "wait_timeout_ms": kind.wait_timeout_ms,
        "effect": kind.effect.value,
        "needs": sorted(need.value for need in kind.needs),
        "params": kind.params.model_json_schema(),
        "enabled": True,
        "supported": supported,
    }


def event(event: Event) -> dict[str, Any]:
    """One event; `action` is left out when it is about none."""
    body: dict[str, Any] = {
        "seq": event.seq,
        "ts": when(event.ts),
        "type": event.type,
        "seat": event.seat,
        "owner": event.owner,
        "data": shown(event.data),
        "trace_id": event.trace_id,
    }
    if event.action is not None:
        body["action"] = event.action
    return body


class Frames:
    """Events as the text of WebSocket messages; each event is encoded once for all clients.

    The last `keep` encodings are kept by the identity of the event, which they keep alive.
    """

    def __init__(self, keep: int = 4096, most: int = 256 * 1024) -> None:
        self._keep = keep
        self._most = most
        self._known: OrderedDict[int, tuple[Event, str]] = OrderedDict()

    def text(self, item: Event) -> str:
        """One event as JSON."""
        known = self._known.get(id(item))
        if known is not None:
            return known[1]
        text = json.dumps(event(item), ensure_ascii=False, separators=(",", ":"))
        self._known[id(item)] = (item, text)
        if len(self._known) > self._keep:
            self._known.popitem(last=False)
        return text

    def split(self, events: Sequence[Event]) -> Iterator[str]:
        """JSON lists of at most `most` characters, unless a single event is larger."""
        part: list[str] = []
        size = 0
        for item in events:
            text = self.text(item)
            if part and size + len(text) > self._most:
                yield f"[{','.join(part)}]"
                part, size = [], 0
            part.append(text)
            size += len(text) + 1
        if part:
            yield f"[{','.join(part)}]"
