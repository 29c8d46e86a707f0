"""The demo app's journal, memory and faults, without a window."""

from __future__ import annotations

import json
import socket

import pytest

from bridge.demoapp import faults, journal
from bridge.demoapp.control import Faults
from bridge.demoapp.memory import KEPT, Memory, new_id


def sent(n: int, to: str = "bob") -> dict[str, object]:
    return {"ts": n, "effect": "message_sent", "to": to, "text": f"t{n}", "message": f"m{n}"}


def test_lines_are_read_back_in_order_and_from_a_position(tmp_path):
    book = journal.Journal(tmp_path)
    book.write("started", pid=1)
    middle = journal.size(tmp_path)
    book.write("message_sent", to="party", text="你好\n🎉", message="m1")
    assert [e["effect"] for e in journal.entries(tmp_path)] == ["started", "message_sent"]
    (entry,) = journal.entries(tmp_path, middle)
    assert (entry["to"], entry["text"], entry["message"]) == ("party", "你好\n🎉", "m1")
    book.close()


def test_a_torn_line_spoils_neither_reading_nor_the_next_line(tmp_path):
    book = journal.Journal(tmp_path)
    book.write("started", pid=1)
    book.close()
    with journal.path_in(tmp_path).open("ab") as file:
        file.write(b'{"ts": 5, "effect": "message_se')
    assert [e["effect"] for e in journal.entries(tmp_path)] == ["started"]
    book = journal.Journal(tmp_path)
    book.write("stopped", pid=1)
    book.close()
    assert [e["effect"] for e in journal.entries(tmp_path)] == ["started", "stopped"]


def test_no_journal_is_an_empty_one(tmp_path):
    assert list(journal.entries(tmp_path)) == []
    assert journal.size(tmp_path) == 0


def test_the_app_remembers_its_chats_and_bounds_them():
    memory = Memory([{"effect": "started", "pid": 1}, sent(1), sent(2, "alice"), sent(3)])
    assert [message.id for message in memory.chat("bob")] == ["m1", "m3"]
    last = memory.last("alice")
    assert last is not None
    assert last.text == "t2"
    assert memory.last("party") is None
    full = Memory(sent(n) for n in range(KEPT + 5))
    assert [full.chat("bob")[0].id, len(full.chat("bob"))] == ["m5", KEPT]


def test_message_ids_are_not_given_twice():
    assert len({new_id("m") for _ in range(1000)}) == 1000


def test_a_popup_strikes_once_and_at_its_moment():
    state = Faults()
    state.apply({"fault": "popup", "on": "paste"})
    assert [state.take_popup("search"), state.take_popup("paste")] == [False, True]
    assert not state.take_popup("paste")


def test_too_frequent_counts_down():
    state = Faults()
    state.apply({"fault": "too_frequent", "count": 2})
    assert [state.take_too_frequent() for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    "request_",
    [{"fault": "no such"}, {}, {"fault": "popup", "on": "never"}, {"fault": "slow", "ms": "x"}],
)
def test_a_wrong_fault_is_refused(request_):
    with pytest.raises(ValueError, match=r"."):
        Faults().apply(request_)


def test_offline_goes_on_and_off():
    state = Faults()
    state.apply({"fault": "offline"})
    assert state.offline
    state.apply({"fault": "offline", "off": True})
    assert not state.offline


def test_the_command_says_so_when_no_app_listens(tmp_path, capsys):
    journal.home(tmp_path).mkdir()
    assert faults.main(["--state-dir", str(tmp_path), "popup"]) == 1
    assert "demo app" in capsys.readouterr().err


def test_the_socket_works_below_a_very_long_path(tmp_path):
    """A Unix socket's own path may have 107 bytes; a state directory may be deeper."""
    deep = tmp_path / ("d" * 120)
    journal.home(deep).mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener, faults.short_path(deep) as path:
        listener.bind(path)
        listener.listen()
        listener.settimeout(5)
        with socket.socket(socket.AF_UNIX) as client, faults.short_path(deep) as again:
            client.connect(again)
            peer, _ = listener.accept()
            with peer:
                peer.sendall(json.dumps({"ok": True}).encode())
            assert json.loads(client.recv(100)) == {"ok": True}
