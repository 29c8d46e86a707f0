"""Actions and events as JSON: every member, RFC 3339 times, nothing about processes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bridge.core_types import ActionRequest
from bridge.model import State, Step
from routes import render
from tests.support.fakecore import NOW, make_action, make_event

REQUEST = ActionRequest("send_text", {"to": "A", "text": "x"}, "k1", False, None, "t1")
MEMBERS = {
    *("id", "seat", "owner", "kind", "params", "priority", "state", "effect", "attempt"),
    *("max_attempts", "idempotency_key", "coalesce_key", "batch_id", "delay_ms", "not_before"),
    *("expires_at", "start_by", "created_at", "started_at", "finished_at", "revision"),
    *("trace_id", "steps", "evidence", "result", "error"),
}


def test_action_has_exactly_the_promised_members() -> None:
    shown = render.action(make_action(REQUEST, 1))
    assert set(shown) == MEMBERS
    assert set(render.action(make_action(REQUEST, 1), {"reason": "gap"})) == MEMBERS | {"waiting"}


def test_nothing_about_processes_and_leases_is_shown() -> None:
    action = make_action(
        REQUEST,
        1,
        evidence={"app": [{"pid": 4711, "title": "Chat"}], "fence": 7},
        error={"code": "UI_ERROR", "detail": "x", "launch_id": "secret-launch"},
    )
    shown = render.action(action)
    assert shown["evidence"] == {"app": [{"title": "Chat"}]}
    assert shown["error"] == {"code": "UI_ERROR", "detail": "x"}
    assert "secret-launch" not in json.dumps(shown)


def test_words_and_steps() -> None:
    step = Step("paste", NOW, 6.9, True, "ok")
    shown = render.action(make_action(REQUEST, 1, state=State.UNCERTAIN, steps=[step]))
    assert (shown["state"], shown["priority"], shown["effect"]) == ("uncertain", "NORMAL", "once")
    assert shown["steps"] == [
        {"name": "paste", "at": "2027-01-15T08:00:00.250Z", "ms": 6.9, "ok": True, "detail": "ok"}
    ]


@given(st.integers(0, 32_503_680_000_000))
def test_times_are_utc_to_the_millisecond(ms: int) -> None:
    text = render.when(ms)
    assert text is not None
    assert text.endswith("Z")
    moment = datetime.fromisoformat(text)
    assert moment - datetime(1970, 1, 1, tzinfo=UTC) == timedelta(milliseconds=ms)


def test_event_without_an_action_has_no_such_member() -> None:
    assert "action" not in render.event(make_event(1, action=None, type="app.ready"))
    assert render.event(make_event(1))["action"] == "a1"


def test_each_event_is_encoded_once() -> None:
    frames = render.Frames(keep=2)
    event = make_event(1)
    assert frames.text(event) is frames.text(event)
    first = frames.text(event)
    frames.text(make_event(2))
    frames.text(make_event(3))
    assert frames.text(event) is not first  # forgotten, so memory is bounded
    assert frames.text(event) == first


@given(st.lists(st.text(max_size=300), max_size=30), st.integers(1, 2000))
def test_frames_keep_order_and_size(texts: list[str], most: int) -> None:
    frames = render.Frames(most=most)
    events = [make_event(seq, data={"text": text}) for seq, text in enumerate(texts, 1)]
    parts = list(frames.split(events))
    lists = [json.loads(part) for part in parts]
    assert [e["seq"] for part in lists for e in part] == list(range(1, len(texts) + 1))
    assert all(
        len(part) <= most + 2 or len(parsed) == 1 for part, parsed in zip(parts, lists, strict=True)
    )
