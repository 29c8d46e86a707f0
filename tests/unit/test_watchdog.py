"""When the watchdog acts, and on what. Pure, and in virtual time."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.model import LoginState
from bridge.watchdog import FAILURES, LEAVE_ALONE, Finding, Patience, Watchdog, look
from ui_backends.base import Ping, Region, Window


def window(pid: int, *, viewable: bool = True, managed: bool = True, size: int = 100) -> Window:
    region = Region(0, 0, size, size)
    return Window(size, "t", ("a", "A"), "", pid, region, viewable=viewable, managed=managed)


class Screen:
    """Eyes on a screen that a test describes."""

    def __init__(self, *windows, ping: Ping = Ping.ALIVE) -> None:
        self.shown = list(windows)
        self.answer = ping
        self.asked: list[int] = []
        self.error: BridgeError | None = None

    async def windows(self):
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error
        return self.shown

    async def ping(self, window, timeout):
        await trio.lowlevel.checkpoint()
        self.asked.append(window)
        return self.answer


@pytest.mark.parametrize(
    ("screen", "found"),
    [
        (Screen(window(7)), Finding.WELL),
        (Screen(window(7), ping=Ping.UNSUPPORTED), Finding.WELL),
        (Screen(window(7), ping=Ping.SILENT), Finding.SILENT),
        (Screen(), Finding.NO_WINDOW),
        (Screen(window(8)), Finding.NO_WINDOW),
        (Screen(window(7, viewable=False)), Finding.NO_WINDOW),
        (Screen(window(7, managed=False)), Finding.NO_WINDOW),
    ],
)
async def test_what_a_look_finds(screen, found):
    assert await look(screen, 7, set()) is found


async def test_a_frozen_display_is_no_fault_of_the_app():
    screen = Screen()
    screen.error = BridgeError("DISPLAY_DEAD", "frozen")
    assert await look(screen, 7, set()) is Finding.NO_DISPLAY


async def test_one_that_has_answered_unannounced_is_expected_to_answer():
    screen, answered = Screen(window(7), ping=Ping.UNSUPPORTED), set()
    assert await look(screen, 7, answered) is Finding.WELL
    screen.answer = Ping.ALIVE
    assert await look(screen, 7, answered) is Finding.WELL
    screen.answer = Ping.UNSUPPORTED
    assert await look(screen, 7, answered) is Finding.SILENT


async def test_the_largest_window_is_asked():
    screen = Screen(window(7, size=10), window(7, size=500), window(8, size=900))
    await look(screen, 7, set())
    assert screen.asked == [500]


steps = st.lists(st.tuples(st.sampled_from(Finding), st.sampled_from(LoginState)), max_size=30)


@given(steps)
def test_it_acts_on_two_bad_findings_in_a_row_and_never_during_a_sign_in(history):
    patience, bad = Patience(), 0
    for finding, login in history:
        bad = bad + 1 if finding in {Finding.NO_WINDOW, Finding.SILENT} else 0
        acts = patience.note(finding, login)
        assert not (acts and (login in LEAVE_ALONE or bad < FAILURES))
        if acts:
            bad = 0
        elif bad >= FAILURES:
            assert login in LEAVE_ALONE


async def test_it_rescues_once_and_looks_again(autojump_clock):
    screen, rescued = Screen(window(7), ping=Ping.SILENT), []

    async def rescue(why: str) -> None:
        rescued.append((trio.current_time(), why))
        screen.answer = Ping.ALIVE

    begun = trio.current_time()
    dog = Watchdog(
        eyes=screen, interval=10, pid=lambda: 7, login=lambda: LoginState.LOGGED_IN, rescue=rescue
    )
    with trio.move_on_after(100):
        await dog.run()
    assert rescued == [(pytest.approx(begun + 20, abs=0.1), "the app does not answer")]


async def test_a_new_process_starts_with_a_clean_record(autojump_clock):
    screen, rescued, pids = Screen(window(7), window(8), ping=Ping.SILENT), [], [7, 8, 7, 8, 7, 8]

    async def rescue(why: str) -> None:
        rescued.append(why)

    dog = Watchdog(
        eyes=screen,
        interval=10,
        pid=lambda: pids.pop(0) if pids else None,
        login=lambda: LoginState.LOGGED_IN,
        rescue=rescue,
    )
    with trio.move_on_after(100):
        await dog.run()
    assert rescued == []


async def test_a_failed_rescue_does_not_end_it(autojump_clock):
    screen, tried = Screen(window(7), ping=Ping.SILENT), []

    async def rescue(why: str) -> None:
        tried.append(why)
        raise BridgeError("APP_NOT_READY", "it does not come up")

    dog = Watchdog(
        eyes=screen, interval=10, pid=lambda: 7, login=lambda: LoginState.LOGGED_IN, rescue=rescue
    )
    with trio.move_on_after(65):
        await dog.run()
    assert len(tried) == 3
