"""The board as text: readable without colour, bounded, and safe."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bridge.cli.board import Board, Done, Running, StepSeen, Wait
from bridge.cli.draw import clean, draw, share, span

NOW = 1_800_000_000_000


def picture(board: Board, *, height: int = 40, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, height=height, force_terminal=False).print(
        draw(board, now=NOW, height=height)
    )
    return out.getvalue()


def full_board() -> Board:
    board = Board("http://127.0.0.1:8655", live=True)
    board.seats = [
        {
            "name": "s0",
            "app": "demo",
            "display": {"name": ":42", "alive": True},
            "app_up": True,
            "login": {"state": "logged_in", "account": "demo"},
        }
    ]
    board.queue = {
        "pending": 12,
        "pending_by_priority": {"NORMAL": 12, "LOW": 0},
        "counts": {"uncertain": 1},
        "held_by": None,
    }
    board.running = Running("a1", "send_text", NOW - 1500, 1)
    board.running.steps.append(StepSeen("paste", 6.0, True, ""))
    board.running.steps_made = 1
    board.waiting = [
        Wait("a2", "send_text → Bob", "NORMAL", NOW - 4000, "gap", NOW + 2500, NOW + 3000)
    ]
    board.waiting_total = 12
    board.done.append(Done("a0", "send_text → Alice", "failed", NOW - 9000, 800, "FOCUS_LOST"))
    return board


def test_everything_asked_for_is_there_without_colour():
    shown = picture(full_board())
    assert "\x1b" not in shown
    for words in (
        "live",
        "display :42 alive",
        "app demo up",
        "sign-in logged_in as demo",
        "12 pending (12 NORMAL)",
        "1 uncertain",
        "NOW  send_text  1.5 s",
        "paste",
        "12 wait",
        "gap for 2.5 s",
        "in 3.0 s",
        "FOCUS_LOST",
    ):
        assert words in shown


def test_a_lost_connection_is_said():
    board = full_board()
    board.lost("connection refused", NOW - 12_000)
    shown = picture(board, width=160)
    assert "connection lost 12 s ago (connection refused); trying again, 1" in shown
    assert "live" not in shown.splitlines()[0]


def test_a_dead_display_and_a_held_queue_are_said():
    board = full_board()
    board.seats = [{"name": "s0", "display": {"name": ":42", "alive": False}, "stuck": True}]
    board.queue = {"pending": 3, "held_by": {"reason": "display", "until": None}}
    shown = picture(board)
    assert "display :42 dead" in shown
    assert "STUCK" in shown
    assert "held by display" in shown


def test_an_empty_board_draws():
    shown = picture(Board("http://127.0.0.1:1"))
    assert "no connection yet" in shown
    assert "nothing runs" in shown
    assert "nothing waits" in shown


@pytest.mark.parametrize("height", [20, 24, 40])
def test_it_fits_the_terminal(height: int):
    board = full_board()
    assert board.running is not None
    for _ in range(100):
        board.running.steps.append(StepSeen("key", 1.0, True, ""))
        board.done.append(board.done[0])
    board.waiting = list(board.waiting) * 30
    board.notice = "app.ready"
    assert len(picture(board, height=height).splitlines()) <= height


def test_lists_share_the_lines_there_are():
    assert share(10, (0, 100, 2)) == [0, 8, 2]
    assert share(3, (5, 5, 5)) == [1, 1, 1]
    assert share(9, (1, 1, 1)) == [1, 1, 1]


def test_a_name_cannot_steer_the_terminal_or_the_markup():
    hostile = "Eve\x1b[2J\x07\u202e [red]x[/red]\nsecond"
    board = full_board()
    board.waiting = [Wait("a2", hostile, "NORMAL", NOW, "gap", None, None)]
    shown = picture(board)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "[red]x[/red] second" in shown


def test_chinese_and_emoji_stay():
    assert clean("张三 🎉 👩\u200d👧") == "张三 🎉 👩\u200d👧"
    assert clean("x" * 100, 10) == "xxxxxxxxx…"


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (-5, "0.0 s"),
        (9_940, "9.9 s"),
        (42_000, "42 s"),
        (185_000, "3 min 05 s"),
        (7_800_000, "2 h 10 min"),
    ],
)
def test_durations(ms: int, words: str):
    assert span(ms) == words
