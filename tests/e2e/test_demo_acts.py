"""Every act of the demo app through its windows: what it leaves in the journal, what it refuses.

The journal is the truth that every test ends with.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

import pytest

from bridge.apps.base import Found
from bridge.errors import BridgeError
from bridge.flow import RetryLater
from tests.support.bounds import bounded
from tests.support.demo import Commit, Demo, signed_in

_COMMON = {"ts", "account"}


def last(demo: Demo) -> dict[str, Any]:
    """The journal's last line without what every line has."""
    return {k: v for k, v in demo.journal()[-1].items() if k not in _COMMON}


def outbox(demo: Demo, name: str, content: bytes) -> Path:
    path = demo.state_dir / "outbox" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


async def refused(demo: Demo, kind: str, code: str, **params: Any) -> BridgeError:
    """The kind ends with `code`, nothing happened, and the app can be tidied."""
    before, commit = len(demo.journal()), Commit()
    with pytest.raises(BridgeError) as caught:
        await demo.act(kind, commit, **params)
    assert (caught.value.code, caught.value.executed) == (code, False), caught.value
    assert not commit.handed_over
    await demo.adapter.clean_screen(demo.hands)
    assert len(demo.journal()) == before
    return caught.value


# -- messages --------------------------------------------------------------------------------


@bounded(120)
async def test_a_message_is_revoked_once(tmp_path):
    async with signed_in(tmp_path) as demo:
        sent = [(await demo.send("Bob", f"text {n}"))["message"] for n in range(3)]
        result = await demo.act("revoke_message", to="Bob", message=sent[1])
        assert result == {"message": sent[1], "to": "bob", "verified": True}
        assert last(demo) == {
            "effect": "message_revoked",
            "to": "Bob",
            "contact": "bob",
            "message": sent[1],
        }
        again = await demo.act("revoke_message", to="Bob", message=sent[1])
        assert again["already"] is True
        assert [e["effect"] for e in demo.journal()].count("message_revoked") == 1
        await refused(demo, "revoke_message", "NOT_FOUND", to="Alice", message=sent[0])
        await refused(demo, "revoke_message", "NOT_FOUND", to="Bob", message="m1")
        await refused(demo, "revoke_message", "CONTACT_NOT_FOUND", to="Bo", message=sent[0])
        theirs = (await demo.arrive("message", "bob", text="from Bob"))["message"]
        error = await refused(demo, "revoke_message", "INVALID_STATE", to="Bob", message=theirs)
        assert "somebody else" in error.detail


@bounded(90)
async def test_a_message_of_long_ago_is_not_revoked(tmp_path):
    async with signed_in(tmp_path, DESKBRIDGE_DEMO_REVOKE_SECONDS="0.01") as demo:
        sent = await demo.send("Bob", "stays")
        error = await refused(
            demo, "revoke_message", "INVALID_STATE", to="Bob", message=sent["message"]
        )
        assert "too late" in error.detail


@bounded(120)
async def test_a_message_is_forwarded_to_exactly_the_one_asked_for(tmp_path):
    async with signed_in(tmp_path) as demo:
        sent = (await demo.send("Bob", "news"))["message"]
        result = await demo.act(
            "forward_message", message=sent, to="Alice Smith", **{"from": "Bob"}
        )
        entry = last(demo)
        assert entry == {
            "effect": "message_forwarded",
            "from": "Bob",
            "message": sent,
            "to": "Alice Smith",
            "contact": "alice.smith",
            "forwarded": result["message"],
            "text": "news",
        }
        onward = await demo.act(
            "forward_message", message=result["message"], to="Alice", **{"from": "Alice Smith"}
        )
        assert last(demo)["contact"] == "alice"
        assert onward["to"] == "alice"
        error = await refused(
            demo, "forward_message", "AMBIGUOUS_CONTACT", message=sent, to="李雷", **{"from": "Bob"}
        )
        assert [c["id"] for c in error.extra["candidates"]] == ["lilei.1", "lilei.2"]
        await refused(
            demo, "forward_message", "CONTACT_NOT_FOUND", message=sent, to="A", **{"from": "Bob"}
        )


NAMES = [
    "plain.txt",
    "-rf --.pdf",
    "a b\tc.txt",
    "报告 终稿.docx",
    "line\nbreak.txt",
    "🎉%20#?.png",
]


@bounded(180)
async def test_a_file_of_any_name_goes_out_with_its_content(tmp_path):
    async with signed_in(tmp_path) as demo:
        for name in NAMES:
            content = name.encode() * 1000
            path = outbox(demo, name, content)
            result = await demo.act("send_file", to="Alice", path=str(path))
            entry = last(demo)
            assert entry == {
                "effect": "file_sent",
                "to": "Alice",
                "contact": "alice",
                "name": name,
                "size": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
                "message": result["message"],
            }
        outbox(demo, "empty", b"")
        assert (await demo.act("send_file", to="lilei.2", path="empty"))["size"] == 0
        revoked = await demo.act("revoke_message", to="Alice", message=result["message"])
        assert revoked["verified"]


@bounded(90)
async def test_files_that_are_not_there_or_not_allowed(tmp_path):
    async with signed_in(tmp_path) as demo:
        secret = tmp_path / "secret"
        secret.write_text("private")
        path = outbox(demo, "link", b"")
        path.unlink()
        path.symlink_to(secret)
        for wanted, code in [
            ("missing", "NOT_FOUND"),
            (str(secret), "INVALID_REQUEST"),
            ("../demo/journal.jsonl", "INVALID_REQUEST"),
            ("link", "INVALID_REQUEST"),
            (".", "INVALID_REQUEST"),
            ("x" * 3000, "INVALID_REQUEST"),
        ]:
            await refused(demo, "send_file", code, to="Bob", path=wanted)


# -- contacts --------------------------------------------------------------------------------


@bounded(180)
async def test_remarks_change_who_is_meant(tmp_path):
    async with signed_in(tmp_path) as demo:
        result = await demo.act("set_remark", contact="lilei.1", remark="李雷 (班长)")
        assert result == {"contact": "lilei.1", "remark": "李雷 (班长)", "verified": True}
        assert last(demo) == {
            "effect": "remark_set",
            "to": "lilei.1",
            "contact": "lilei.1",
            "name": "李雷",
            "remark": "李雷 (班长)",
        }
        assert (await demo.send("李雷 (班长)", "hello"))["to"] == "lilei.1"
        same = await demo.act("set_remark", contact="李雷 (班长)", remark="李雷 (班长)")
        assert same["already"] is True
        # the first hit of "Bob" is now another contact, whose remark begins so
        await demo.act("set_remark", contact="Alice", remark="Bobby")
        assert (await demo.send("Bob", "to Bob himself"))["to"] == "bob"
        # the open chat is Bob's by name; somebody else may be called so as well by now
        await demo.act("set_remark", contact="张三", remark="Bob")
        await demo.send("bob", "by id")
        with pytest.raises(BridgeError) as caught:
            await demo.send("Bob", "to whom?")
        assert caught.value.code == "AMBIGUOUS_CONTACT"
        await demo.adapter.clean_screen(demo.hands)
        await demo.act("set_remark", contact="zhangsan", remark="")
        assert (await demo.send("Bob", "to Bob again"))["to"] == "bob"
        await refused(demo, "set_remark", "INVALID_REQUEST", contact="Bob", remark="a / b")
        # what the app remembers outlives it
        await demo.stop()
        await demo.launch()
        await demo.until(lambda view: view.main)
        assert (await demo.send("Bobby", "still"))["to"] == "alice"


@bounded(120)
async def test_an_account_is_added_with_a_greeting(tmp_path):
    async with signed_in(tmp_path) as demo:
        await refused(demo, "add_friend", "CONTACT_NOT_FOUND", account="nobody", greeting="")
        await refused(demo, "add_friend", "INVALID_STATE", account="alice", greeting="")
        result = await demo.act("add_friend", account="carol", greeting="Hi,\nit is me 👋")
        assert result == {"account": "carol", "verified": True}
        assert last(demo) == {
            "effect": "friend_added",
            "to": "Carol",
            "contact": "carol",
            "name": "Carol",
            "greeting": "Hi,\nit is me 👋",
        }
        assert (await demo.send("Carol", "welcome"))["to"] == "carol"
        await refused(demo, "add_friend", "INVALID_STATE", account="carol", greeting="")


@bounded(120)
async def test_a_request_that_arrived_is_accepted_once(tmp_path):
    async with signed_in(tmp_path) as demo:
        one = await demo.arrive("friend", "dave", name="Dave", text="Hello")
        two = await demo.arrive("friend", "erin")
        result = await demo.act("accept_friend", request=one["request"])
        assert result == {"request": one["request"], "account": "dave", "verified": True}
        assert last(demo) == {
            "effect": "friend_accepted",
            "request": one["request"],
            "contact": "dave",
            "name": "Dave",
        }
        again = await demo.act("accept_friend", request=one["request"])
        assert again["already"] is True
        await refused(demo, "accept_friend", "NOT_FOUND", request="r1")
        assert (await demo.send("Dave", "hi"))["to"] == "dave"
        with pytest.raises(BridgeError):
            await demo.send("Erin", "not yet")
        await demo.adapter.clean_screen(demo.hands)
        await demo.act("accept_friend", request=two["request"])
        assert (await demo.send("Erin", "now"))["to"] == "erin"


# -- moments ---------------------------------------------------------------------------------


@bounded(240)
async def test_the_life_of_a_moment(tmp_path):
    async with signed_in(tmp_path) as demo:
        pictures = [outbox(demo, f"{n} 图.png", b"png" * n) for n in (1, 2)]
        text = "two\nlines 🎉"
        result = await demo.act(
            "publish_moment", text=text, images=[str(p) for p in pictures]
        )  # fmt: skip
        moment = result["moment"]
        entry = last(demo)
        assert (entry["effect"], entry["moment"], entry["text"]) == (
            "moment_published",
            moment,
            text,
        )
        assert [(i["name"], i["sha256"]) for i in entry["images"]] == [
            (p.name, hashlib.sha256(p.read_bytes()).hexdigest()) for p in pictures
        ]
        liked = await demo.act("like_moment", moment=moment)
        assert liked == {"moment": moment, "liked": True, "verified": True}
        assert last(demo) == {"effect": "moment_liked", "moment": moment}
        assert (await demo.act("like_moment", moment=moment))["already"] is True
        unliked = await demo.act("like_moment", moment=moment, liked=False)
        assert unliked["liked"] is False
        assert last(demo) == {"effect": "moment_unliked", "moment": moment}
        comment = await demo.act("comment_moment", moment=moment, text="-n\tnice")
        assert last(demo) == {
            "effect": "moment_commented",
            "moment": moment,
            "text": "-n\tnice",
            "comment": comment["comment"],
        }
        forwarded = await demo.act("forward_moment", moment=moment, to="🎉 Party")
        assert last(demo) == {
            "effect": "moment_forwarded",
            "moment": moment,
            "to": "🎉 Party",
            "contact": "party",
            "forwarded": forwarded["message"],
            "text": text,
        }
        await demo.act("delete_moment", moment=moment)
        assert last(demo) == {"effect": "moment_deleted", "moment": moment}
        for kind, more in [
            ("like_moment", {}),
            ("delete_moment", {}),
            ("comment_moment", {"text": "x"}),
            ("forward_moment", {"to": "Bob"}),
        ]:
            await refused(demo, kind, "NOT_FOUND", moment=moment, **more)


@bounded(120)
async def test_links_and_other_peoples_moments(tmp_path):
    async with signed_in(tmp_path) as demo:
        shared = await demo.act("share_moment", url="https://a.example/ü?q=1#x", text="look")
        assert last(demo) == {
            "effect": "moment_shared",
            "moment": shared["moment"],
            "url": "https://a.example/ü?q=1#x",
            "text": "look",
        }
        theirs = (await demo.arrive("moment", "alice", text="What a day"))["moment"]
        await demo.act("like_moment", moment=theirs)
        assert last(demo) == {"effect": "moment_liked", "moment": theirs}
        error = await refused(demo, "delete_moment", "INVALID_STATE", moment=theirs)
        assert "somebody else" in error.detail
        await refused(demo, "publish_moment", "NOT_FOUND", text="x", images=["missing.png"])
        only = await demo.act("publish_moment", text="only words")
        assert last(demo)["images"] == []
        assert only["moment"] != shared["moment"]


# -- disturbed, and behind the commit point --------------------------------------------------

ACTS: list[tuple[str, dict[str, Any]]] = [
    ("send_file", {"to": "Bob", "path": "f"}),
    ("set_remark", {"contact": "Bob", "remark": "B"}),
    ("add_friend", {"account": "carol", "greeting": "hi"}),
    ("publish_moment", {"text": "x"}),
    ("share_moment", {"url": "https://a.example", "text": ""}),
]


@bounded(180)
async def test_a_popup_before_the_key_stops_every_panel(tmp_path):
    async with signed_in(tmp_path) as demo:
        outbox(demo, "f", b"x")

        async def popup() -> None:
            await demo.fault("popup")
            await demo.until(lambda view: any(d.title == "Notice" for d in view.dialogs))

        for kind, params in ACTS:
            commit = Commit(before=popup)
            with pytest.raises(BridgeError) as caught:
                await demo.act(kind, commit, **params)
            assert (caught.value.code, commit.handed_over) == ("FOCUS_LOST", False), kind
            await demo.adapter.clean_screen(demo.hands)
        assert {e["effect"] for e in demo.journal()} == {"started", "signed_in"}
        for kind, params in ACTS:
            await demo.act(kind, **params)


@bounded(180)
async def test_a_throttle_and_a_popup_in_the_keys_way_are_judged_not_done(tmp_path):
    async with signed_in(tmp_path) as demo:
        outbox(demo, "f", b"x")
        for kind, params in ACTS:
            await demo.fault("too_frequent")
            commit = Commit()
            with pytest.raises(RetryLater) as caught:
                await demo.act(kind, commit, **params)
            assert caught.value.queue
            assert commit.handed_over
            assert await demo.look_for(kind, commit, app_ended=False, **params) is Found.NOT_DONE
            await demo.adapter.clean_screen(demo.hands)
            await demo.fault("popup", on="before_return")
            commit = Commit()
            with pytest.raises(BridgeError) as lost:
                await demo.act(kind, commit, **params)
            assert lost.value.code == "FOCUS_LOST"
            assert await demo.look_for(kind, commit, app_ended=False, **params) is Found.NOT_DONE
            await demo.adapter.clean_screen(demo.hands)
        assert {e["effect"] for e in demo.journal()} == {"started", "signed_in"}


@bounded(180)
@pytest.mark.parametrize(("fault", "found"), [("after_return", "done"), ("before_journal", "not")])
async def test_a_crash_in_the_key_is_told_by_the_history(tmp_path, fault, found):
    async with signed_in(tmp_path) as demo:
        outbox(demo, "f", b"x")
        for kind, params in ACTS[:2]:
            await demo.fault(f"crash_{fault}")
            commit = Commit()
            with contextlib.suppress(BridgeError):  # the history may tell before the app is gone
                await demo.act(kind, commit, **params)
            assert commit.handed_over
            await demo.ended()
            expected = Found.DONE if found == "done" else Found.NOT_DONE
            assert await demo.look_for(kind, commit, app_ended=True, **params) is expected
            await demo.launch()
            await demo.until(lambda view: view.main)


@bounded(120)
async def test_slow_drawing_is_waited_for_in_every_panel(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("slow", ms=300)
        outbox(demo, "f", b"x")
        for kind, params in ACTS:
            await demo.act(kind, **params)
        moment = demo.journal()[-1]["moment"]
        await demo.act("like_moment", moment=moment)
        await demo.act("forward_moment", moment=moment, to="Alice")
        assert last(demo)["contact"] == "alice"
