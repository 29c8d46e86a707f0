"""The demo app and its adapter, on a real display: what is sent, what is refused, what is proven.

The journal is the truth that every test ends with.
"""

from __future__ import annotations

import contextlib
import os
import signal
from functools import partial

import pytest
import trio

from bridge.apps.base import Found
from bridge.demoapp import faults, journal
from bridge.errors import BridgeError
from bridge.flow import RetryLater
from bridge.model import LoginState
from tests.support.bounds import bounded, until
from tests.support.demo import Commit, demo_desktop, signed_in

# -- signing in ------------------------------------------------------------------------------


@bounded(60)
async def test_it_signs_in_by_itself_through_starting(tmp_path):
    async with demo_desktop(tmp_path) as demo:
        await demo.state(LoginState.UNKNOWN)
        await demo.launch()
        await demo.state(LoginState.STARTING)
        assert (await demo.state(LoginState.LOGGED_IN)).account == "demo"
        assert demo.app is not None
        main = (await demo.view()).main
        assert main is not None
        assert (main.wm_class[1], main.pid) == ("DeskbridgeDemo", demo.app.pid)
        assert [e["effect"] for e in demo.journal()] == ["started", "signed_in"]
        await demo.stop()
        assert [(e["effect"], e["pid"]) for e in demo.journal()][-1] == ("stopped", main.pid)


@bounded(60)
async def test_the_manual_way_waits_at_its_qr(tmp_path):
    async with demo_desktop(tmp_path, DESKBRIDGE_DEMO_SIGN_IN="manual") as demo:
        await demo.launch()
        await demo.state(LoginState.QR)
        with pytest.raises(BridgeError) as caught:
            await demo.send("Alice", "no")
        assert caught.value.code == "NOT_LOGGED_IN"
        await demo.adapter.clean_screen(demo.hands)
        assert [e["effect"] for e in demo.journal()] == ["started"]


@bounded(60)
async def test_signing_out_by_the_menu_ends_at_the_qr(tmp_path):
    async with signed_in(tmp_path) as demo:
        main = (await demo.view()).main
        assert main is not None
        await demo.hands.activate(main.id)
        await demo.hands.chord("F10", window=main.id)
        await demo.until(lambda view: view.menus)
        await demo.hands.chord("Down")
        await demo.hands.chord("Return")
        view = await demo.until(lambda view: view.dialogs)
        assert [window.title for window in view.dialogs] == ["Sign out?"]
        await demo.hands.activate(view.dialogs[0].id)
        await demo.hands.chord("Return", window=view.dialogs[0].id)
        await demo.state(LoginState.QR)
        assert demo.journal()[-1]["effect"] == "signed_out"


# -- sending ---------------------------------------------------------------------------------

CONTACTS = [
    ("Alice", "alice"),
    ("alice", "alice"),
    ("Alice Smith", "alice.smith"),
    ("Bob", "bob"),
    ("张三", "zhangsan"),
    ("lilei.1", "lilei.1"),
    ("lilei.2", "lilei.2"),
    ("🎉 Party", "party"),
]

TEXTS = [
    "plain",
    "l",
    "-rf --leading dash",
    "你好，世界",
    "🎉 👩‍👩‍👧‍👦 emoji",
    "two\nlines\n\nand a blank one",
    "  spaces around  ",
    "ends in a newline\n",
    "tab\there",
    "é combining, שלום right to left",
    "0123456789" * 500,
]


@bounded(90)
async def test_every_contact_gets_its_own_message(tmp_path):
    async with signed_in(tmp_path) as demo:
        for to, account in CONTACTS:
            result = await demo.send(to, f"for {account}")
            entry = demo.journal()[-1]
            assert result == {"message": entry["message"], "to": account, "verified": True}
        assert demo.sent() == [(account, f"for {account}") for _, account in CONTACTS]


@bounded(90)
async def test_every_text_arrives_equal(tmp_path):
    async with signed_in(tmp_path) as demo:
        for text in TEXTS:
            await demo.send("bob", text)
        assert demo.sent() == [("bob", text) for text in TEXTS]


@bounded(60)
async def test_nobody_and_several_are_told_apart_and_send_nothing(tmp_path):
    async with signed_in(tmp_path) as demo:
        for to, code in [
            ("Ali", "CONTACT_NOT_FOUND"),
            ("nobody here", "CONTACT_NOT_FOUND"),
            ("carol", "CONTACT_NOT_FOUND"),
            ("李雷", "AMBIGUOUS_CONTACT"),
        ]:
            with pytest.raises(BridgeError) as caught:
                await demo.send(to, "no")
            assert (caught.value.code, caught.value.executed) == (code, False)
            await demo.adapter.clean_screen(demo.hands)
        candidates = caught.value.extra["candidates"]
        assert [person["id"] for person in candidates] == ["lilei.1", "lilei.2"]
        assert demo.sent() == []


@bounded(60)
async def test_an_open_chat_with_one_of_two_namesakes_does_not_hide_the_other(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.send("lilei.1", "by id")
        with pytest.raises(BridgeError) as caught:
            await demo.send("李雷", "by name")
        assert caught.value.code == "AMBIGUOUS_CONTACT"
        assert demo.sent() == [("lilei.1", "by id")]


@bounded(60)
@pytest.mark.parametrize("text", [" \n\t", "\u200b\ufeff", "nul\0"])
async def test_a_text_that_cannot_be_seen_or_held_is_refused_unpressed(tmp_path, text):
    async with signed_in(tmp_path) as demo:
        before = len(demo.steps)
        with pytest.raises(BridgeError) as caught:
            await demo.send("Bob", text)
        assert caught.value.code == "INVALID_REQUEST"
        assert demo.steps[before:] == []


@bounded(60)
async def test_slow_drawing_is_waited_for(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("slow", ms=700)
        await demo.send("Alice Smith", "slow but whole")
        assert demo.sent() == [("alice.smith", "slow but whole")]


@bounded(60)
async def test_a_restart_shows_what_was_said_and_goes_on(tmp_path):
    async with signed_in(tmp_path) as demo:
        first = await demo.send("Bob", "before")
        await demo.stop()
        await demo.launch()
        await demo.state(LoginState.LOGGED_IN)
        second = await demo.send("Bob", "after")
        assert first["message"] != second["message"]
        assert demo.sent() == [("bob", "before"), ("bob", "after")]


@bounded(60)
async def test_an_invisible_left_over_is_not_sent_along(tmp_path):
    """What a broken flow left in the entry may not show at all."""
    async with signed_in(tmp_path) as demo:
        await demo.send("bob", "first")
        main = (await demo.view()).main
        assert main is not None
        await demo.hands.paste_text(main.id, "\u200b")
        await demo.adapter.clean_screen(demo.hands)
        await demo.hands.paste_text(main.id, "\u200b")
        await demo.send("bob", "second")
        assert demo.sent() == [("bob", "first"), ("bob", "second")]


# -- disturbed -------------------------------------------------------------------------------


@bounded(60)
@pytest.mark.parametrize("moment", ["search", "paste"])
async def test_a_popup_in_the_flow_is_focus_lost_and_nothing_is_sent(tmp_path, moment):
    async with signed_in(tmp_path) as demo:
        await demo.fault("popup", on=moment)
        commit = Commit()
        with pytest.raises(BridgeError) as caught:
            await demo.send("Alice Smith", "no", commit)
        assert (caught.value.code, commit.handed_over) == ("FOCUS_LOST", False)
        await demo.adapter.clean_screen(demo.hands)
        assert demo.sent() == []
        await demo.send("Alice Smith", "yes")
        assert demo.sent() == [("alice.smith", "yes")]


@bounded(60)
async def test_a_popup_right_before_return_is_seen_by_the_last_look(tmp_path):
    async with signed_in(tmp_path) as demo:

        async def popup() -> None:
            await demo.fault("popup")
            await demo.until(lambda view: view.dialogs)

        commit = Commit(before=popup)
        with pytest.raises(BridgeError) as caught:
            await demo.send("Bob", "no", commit)
        assert (caught.value.code, commit.handed_over) == ("FOCUS_LOST", False)
        assert demo.sent() == []


@bounded(60)
async def test_a_draft_that_was_typed_on_is_not_sent(tmp_path):
    async with signed_in(tmp_path) as demo:

        async def type_on() -> None:
            await demo.hands.chord("x")
            await demo.until(lambda view: view.title)

        commit = Commit(before=type_on)
        with pytest.raises(BridgeError) as caught:
            await demo.send("Bob", "mine", commit)
        assert (caught.value.code, commit.handed_over) == ("VERIFY_FAILED", False)
        assert demo.sent() == []


@bounded(60)
async def test_offline_is_read_and_refused(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("offline")
        assert (await demo.state(LoginState.OFFLINE)).account == "demo"
        with pytest.raises(BridgeError) as caught:
            await demo.send("Bob", "no")
        assert caught.value.code == "APP_NOT_READY"
        await demo.fault("offline", off=True)
        await demo.state(LoginState.LOGGED_IN)
        await demo.send("Bob", "yes")
        assert demo.sent() == [("bob", "yes")]


@bounded(90)
async def test_any_mess_is_tidied(tmp_path):
    async with signed_in(tmp_path) as demo:
        main = (await demo.view()).main
        assert main is not None

        async def draft() -> None:
            await demo.send("Bob", "x", Commit(before=_stop))

        async def searching() -> None:
            await demo.hands.chord("ctrl", "f", window=main.id)
            await demo.hands.paste_text(main.id, "Alice")
            await demo.until(lambda view: view.title and view.title.hits)

        async def menu() -> None:
            await demo.hands.chord("F10", window=main.id)
            await demo.until(lambda view: view.menus)

        async def dialog() -> None:
            await demo.fault("popup")
            await demo.until(lambda view: view.dialogs)

        for mess in (draft, searching, menu, dialog):
            await demo.hands.activate(main.id)
            with trio.fail_after(20):
                with contextlib.suppress(Stopped):
                    await mess()
                await demo.adapter.clean_screen(demo.hands)
            view = await demo.view()
            assert (view.dialogs, view.menus) == ((), ())
            assert view.title is not None
            assert not view.title.searching
            await demo.send("alice", mess.__name__)
        assert demo.sent() == [("alice", name) for name in ("draft", "searching", "menu", "dialog")]


class Stopped(Exception):
    """Ends a flow right before its Return."""


async def _stop() -> None:
    raise Stopped


# -- behind the commit point -----------------------------------------------------------------


@bounded(60)
async def test_too_frequent_cools_down_and_is_proven_unsent(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("too_frequent")
        commit = Commit()
        with pytest.raises(RetryLater) as caught:
            await demo.send("Bob", "again", commit)
        assert (caught.value.queue, caught.value.counts) == (True, False)
        verdict = await demo.verify("Bob", "again", commit, app_ended=False)
        assert verdict.found is Found.NOT_DONE
        assert verdict.evidence["draft_still_there"]
        assert demo.sent() == []
        await demo.adapter.clean_screen(demo.hands)
        await demo.send("Bob", "again")
        assert demo.sent() == [("bob", "again")]


@bounded(60)
async def test_a_dialog_that_took_the_return_is_proven_unsent(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("popup", on="before_return")
        commit = Commit()
        with pytest.raises(BridgeError) as caught:
            await demo.send("Bob", "x", commit)
        assert (caught.value.code, commit.handed_over) == ("FOCUS_LOST", True)
        verdict = await demo.verify("Bob", "x", commit, app_ended=False)
        assert verdict.found is Found.NOT_DONE, verdict
        assert demo.sent() == []


@bounded(60)
@pytest.mark.parametrize(
    ("fault", "sent", "found"),
    [
        ("crash_after_return", [("bob", "x")], Found.DONE),
        ("crash_before_journal", [], Found.NOT_DONE),
    ],
)
async def test_a_crash_at_return_is_judged_by_the_history(tmp_path, fault, sent, found):
    async with signed_in(tmp_path) as demo:
        await demo.fault(fault)
        commit = Commit(after=_wait_for_end(demo))
        try:
            await demo.send("Bob", "x", commit)
        except BridgeError:
            assert found is Found.NOT_DONE
        assert await demo.ended() != 0
        verdict = await demo.verify("Bob", "x", commit, app_ended=True)
        assert verdict.found is found
        assert verdict.evidence["in_history"] is bool(sent)
        assert demo.sent() == sent


def _wait_for_end(demo):
    async def wait() -> None:
        await demo.ended()

    return wait


@bounded(60)
async def test_a_frozen_app_leaves_it_unknown_until_it_answers(tmp_path):
    async with signed_in(tmp_path) as demo:

        async def freeze() -> None:
            assert demo.app is not None
            os.kill(demo.app.pid, signal.SIGSTOP)

        async def press_into_a_frozen_app() -> None:
            await freeze()
            raise Stopped

        commit = Commit(before=press_into_a_frozen_app)
        with pytest.raises(Stopped):
            await demo.send("Bob", "x", commit)
        assert demo.app is not None
        main = commit.mark["window"] if commit.mark else 0
        await demo.backend.chord("Return", window=main)
        verdict = await demo.verify("Bob", "x", commit, app_ended=False)
        assert verdict.found is Found.UNKNOWN
        assert verdict.evidence["answered"] is False
        os.kill(demo.app.pid, signal.SIGCONT)
        await demo.backend.ping(main, timeout=10)
        verdict = await demo.verify("Bob", "x", commit, app_ended=False)
        assert verdict.found is Found.DONE
        assert demo.sent() == [("bob", "x")]


@bounded(60)
async def test_an_emptied_entry_without_a_message_is_unknown(tmp_path):
    async with signed_in(tmp_path) as demo:
        commit = Commit(before=_stop)
        with pytest.raises(Stopped):
            await demo.send("Bob", "x", commit)
        await demo.adapter.clean_screen(demo.hands)
        verdict = await demo.verify("Bob", "x", commit, app_ended=False)
        assert verdict.found is Found.UNKNOWN
        assert verdict.evidence["answered"] is True


@bounded(60)
async def test_an_equal_text_from_before_the_mark_proves_nothing(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.send("Bob", "same")
        commit = Commit(before=_stop)
        with pytest.raises(Stopped):
            await demo.send("Bob", "same", commit)
        verdict = await demo.verify("Bob", "same", commit, app_ended=False)
        assert verdict.found is Found.NOT_DONE


# -- faults ----------------------------------------------------------------------------------


@bounded(60)
async def test_freeze_silences_the_app_for_its_time_only(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("freeze", seconds=2)
        begun = trio.current_time()
        silent = partial(faults.switch, demo.state_dir, "slow", ms=0, timeout=0.5)
        with pytest.raises(OSError, match="timed out"):
            await trio.to_thread.run_sync(silent)
        await demo.fault("slow", ms=0)
        assert 1 < trio.current_time() - begun < 20


@bounded(60)
async def test_a_crash_leaves_no_stopped_in_the_journal(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("crash")
        assert await demo.ended() != 0
        assert [e["effect"] for e in demo.journal()] == ["started", "signed_in"]
        await demo.state(LoginState.UNKNOWN)


@bounded(60)
async def test_a_wrong_fault_is_answered_and_harms_nothing(tmp_path):
    async with signed_in(tmp_path) as demo:
        with pytest.raises(ValueError, match="no such fault"):
            await demo.fault("melt")
        await demo.send("Bob", "fine")


@bounded(60)
async def test_the_journal_has_a_message_before_the_screen_does(tmp_path):
    """The app dies between the two, so the screen never showed what the journal has."""
    async with signed_in(tmp_path) as demo:
        await demo.fault("crash_after_return")
        commit = Commit(after=_wait_for_end(demo))
        await demo.send("Bob", "durable", commit)
        assert commit.mark is not None
        (entry,) = journal.entries(demo.state_dir, commit.mark["position"])
        assert (entry["effect"], entry["text"]) == ("message_sent", "durable")


@bounded(60)
async def test_a_paste_replaces_a_selection(tmp_path):
    async with signed_in(tmp_path) as demo:

        async def paste_over() -> None:
            main = commit.mark["window"] if commit.mark else 0
            await demo.hands.chord("ctrl", "a", window=main)
            await demo.hands.paste_text(main, "instead")
            await demo.hands.chord("Return", window=main)
            await until(demo.sent)
            raise Stopped

        commit = Commit(before=paste_over)
        with pytest.raises(Stopped):
            await demo.send("Bob", "first", commit)
        assert demo.sent() == [("bob", "instead")]


@bounded(60)
async def test_shift_return_starts_a_line_and_does_not_send(tmp_path):
    async with signed_in(tmp_path) as demo:

        async def two_lines() -> None:
            main = commit.mark["window"] if commit.mark else 0
            await demo.hands.chord("shift", "Return", window=main)
            await demo.hands.chord("b", window=main)
            await demo.hands.chord("Return", window=main)
            await until(demo.sent)
            raise Stopped

        commit = Commit(before=two_lines)
        with pytest.raises(Stopped):
            await demo.send("Bob", "a", commit)
        assert demo.sent() == [("bob", "a\nb")]
