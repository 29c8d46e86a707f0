"""The board of `watch`: what events and lists make of it."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.cli.board import Board, ms_of, title_of


def event(seq: int, type: str, action: str | None = None, ts: str = "", **data: Any) -> dict:
    found: dict[str, Any] = {"seq": seq, "type": type, "ts": ts, "data": data}
    if action is not None:
        found["action"] = action
    return found


def row(id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": id,
        "kind": "send_text",
        "params": {"to": "Alice", "text": "secret"},
        "priority": "NORMAL",
        "state": "pending",
        "created_at": "2026-01-01T10:00:00.000Z",
        **changes,
    }


def hello(epoch: str = "e1", **snapshot: Any) -> dict[str, Any]:
    return {"type": "hello", "epoch": epoch, "seq": 0, "snapshot": snapshot}


@pytest.fixture
def board() -> Board:
    board = Board("http://127.0.0.1:1")
    board.connected(hello())
    return board


def test_a_flow_from_start_to_end(board: Board):
    board.see_waiting([row("a1")], 1)
    board.see_event(event(1, "action.started", "a1", "2026-01-01T10:00:01.000Z", kind="send_text"))
    assert board.running is not None
    assert board.running.id == "a1"
    assert board.waiting == []
    board.see_event(event(1, "action.step", "a1", name="paste", ms=4.2, ok=True))
    board.see_event(event(1, "action.step", "a1", name="key", ms=1.0, ok=False, detail="no focus"))
    assert [(step.name, step.ok) for step in board.running.steps] == [
        ("paste", True),
        ("key", False),
    ]
    board.see_event(event(2, "action.succeeded", "a1", "2026-01-01T10:00:03.500Z"))
    assert board.running is None
    assert board.done[0].title == "send_text → Alice"
    assert (board.done[0].outcome, board.done[0].took) == ("succeeded", 2500)


def test_a_step_of_another_action_is_not_shown(board: Board):
    board.see_event(event(1, "action.started", "a1", kind="send_text"))
    board.see_event(event(1, "action.step", "a0", name="late", ms=1, ok=True))
    assert board.running is not None
    assert not board.running.steps


def test_events_that_come_again_count_once(board: Board):
    board.see_event(event(5, "action.failed", "a1", kind="send_text"))
    board.see_event(event(5, "action.failed", "a1", kind="send_text"))
    board.see_event(event(4, "action.cancelled", "a0", kind="send_text"))
    assert [one.id for one in board.done] == ["a1"]


def test_a_list_older_than_the_events_does_not_bring_back_what_ended(board: Board):
    board.see_event(event(7, "action.started", "a1", kind="send_text"))
    board.see_event(event(9, "action.succeeded", "a1"))
    board.see_running([row("a1", state="running")], seq=8)
    assert board.running is None


def test_an_older_list_does_not_hide_what_has_started(board: Board):
    board.see_event(event(9, "action.started", "a2", kind="send_text"))
    board.see_running([], seq=8)
    assert board.running is not None


def test_joining_in_the_middle_shows_the_steps_made(board: Board):
    steps = [{"name": "find", "ms": 3, "ok": True, "detail": ""}]
    board.see_running([row("a1", state="running", steps=steps, attempt=2)], seq=3)
    assert board.running is not None
    assert board.running.steps_made == 1
    assert board.running.attempt == 2


def test_retrying_frees_the_seat_and_ends_nothing(board: Board):
    board.see_event(event(1, "action.started", "a1", kind="send_text"))
    board.see_event(event(2, "action.retrying", "a1"))
    assert board.running is None
    assert not board.done


def test_waiting_actions_stand_in_the_order_of_starting(board: Board):
    rows = [
        row("low", priority="LOW", created_at="2026-01-01T09:00:00.000Z"),
        row("late", created_at="2026-01-01T10:00:02.000Z"),
        row("early"),
        row("first", priority="CRITICAL", created_at="2026-01-01T11:00:00.000Z"),
    ]
    board.see_waiting(rows, 40)
    assert [one.id for one in board.waiting] == ["first", "early", "late", "low"]
    assert board.waiting_total == 40


def test_why_it_waits_and_until_when(board: Board):
    waiting = {"reason": "cooldown", "until": "2026-01-01T10:01:00.000Z", "ahead": 3, "eta": None}
    board.see_waiting([row("a1", waiting=waiting)], 1)
    one = board.waiting[0]
    assert (one.reason, one.until, one.eta) == ("cooldown", ms_of(waiting["until"]), None)


def test_an_uncertain_action_that_is_resolved_is_shown_once(board: Board):
    board.see_event(event(1, "action.uncertain", "a1", kind="send_text"))
    board.see_event(event(2, "action.resolved", "a1", kind="send_text"))
    assert [(one.id, one.outcome) for one in board.done] == [("a1", "resolved")]


def test_a_failure_says_its_code(board: Board):
    error = {"code": "FOCUS_LOST", "detail": "a popup"}
    board.see_event(event(1, "action.failed", "a1", kind="send_text", error=error))
    assert board.done[0].why == "FOCUS_LOST"


def test_lost_and_healed(board: Board):
    board.lost("refused", now=1000)
    board.lost("refused", now=2000)
    assert (board.live, board.lost_since, board.tries) == (False, 1000, 2)
    board.connected(hello())
    assert (board.live, board.lost_since, board.tries) == (True, None, 0)


def test_another_database_starts_the_picture_anew(board: Board):
    board.see_event(event(9, "action.succeeded", "a1", kind="send_text"))
    board.connected(hello("e2"))
    assert not board.done
    board.see_event(event(1, "action.succeeded", "b1", kind="send_text"))
    assert [one.id for one in board.done] == ["b1"]


def test_what_ended_before_we_came_stands_behind_what_we_saw(board: Board):
    board.see_event(event(9, "action.succeeded", "a3", kind="send_text"))
    board.see_done(
        [
            row("a1", state="failed", finished_at="2026-01-01T10:00:00.000Z"),
            row("a3", state="succeeded", finished_at="2026-01-01T10:00:02.000Z"),
            row("a2", state="succeeded", finished_at="2026-01-01T10:00:01.000Z"),
        ]
    )
    assert [one.id for one in board.done] == ["a3", "a2", "a1"]


def test_memory_is_bounded(board: Board):
    for number in range(1, 2000):
        board.see_waiting([row(f"a{number}")], 1)
        board.see_event(event(number, "action.succeeded", f"a{number}", kind="send_text"))
    assert len(board.done) == 50
    assert len(board._names) == 500


def test_a_title_never_shows_the_text():
    assert title_of(row("a1")) == "send_text → Alice"
    assert title_of({"kind": "screenshot", "params": {}}) == "screenshot"
