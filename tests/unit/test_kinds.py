"""The catalogue: every kind as it is promised, and its params as they are stored."""

from __future__ import annotations

import pytest

from bridge.errors import BridgeError
from bridge.kinds import CATALOGUE, Act, request_hash
from bridge.model import Need
from routes import body

PROMISED = """
send_text        /send/text                     NORMAL   15000 once
send_file        /send/file                     NORMAL   15000 once
revoke_message   /messages/revoke               NORMAL   15000 idempotent
forward_message  /messages/forward              NORMAL   15000 once
set_remark       /friends/remark                NORMAL   15000 idempotent
add_friend       /friends/add                   NORMAL   15000 once
accept_friend    /friends/accept                HIGH     30000 idempotent
publish_moment   /moments/publish               NORMAL   30000 once
share_moment     /moments/share                 NORMAL   30000 once
delete_moment    /moments/delete                NORMAL   15000 idempotent
forward_moment   /moments/forward               NORMAL   30000 once
like_moment      /moments/like                  LOW      15000 idempotent
comment_moment   /moments/comment               LOW      15000 once
screenshot       /screenshot                    LOW      10000 read
capture_qr       /login/qr/start                HIGH     15000 read
logout           /login/logout                  HIGH     30000 idempotent
restart_app      /app/restart                   CRITICAL 60000 idempotent
autofix          /diagnostic/autofix/{check}    CRITICAL 30000 idempotent
"""


def test_every_kind_is_there_as_promised() -> None:
    promised = [tuple(line.split()) for line in PROMISED.strip().splitlines()]
    there = [
        (kind.name, kind.path, kind.priority.name, str(kind.wait_timeout_ms), kind.effect.value)
        for kind in CATALOGUE.values()
    ]
    assert sorted(there) == sorted(promised)


def test_what_is_done_in_somebodys_name_needs_him_signed_in_and_can_be_rehearsed() -> None:
    for kind in CATALOGUE.values():
        assert issubclass(kind.params, Act) is (Need.SIGNED_IN in kind.needs), kind.name


def test_a_dry_run_of_false_is_the_same_request() -> None:
    kind = CATALOGUE["send_text"]
    plain = body.params(kind, {"to": "Alice", "text": "x"})
    assert plain == {"to": "Alice", "text": "x"}
    assert body.params(kind, {"to": "Alice", "text": "x", "dry_run": False}) == plain
    rehearsal = body.params(kind, {"to": "Alice", "text": "x", "dry_run": True})
    assert rehearsal == {**plain, "dry_run": True}
    assert request_hash("send_text", rehearsal) != request_hash("send_text", plain)


def test_a_forward_names_both_chats() -> None:
    given = {"from": "Alice", "message": "m1", "to": "Bob"}
    assert body.params(CATALOGUE["forward_message"], given) == given


@pytest.mark.parametrize(
    ("kind", "params", "key"),
    [
        ("like_moment", {"moment": "p1", "liked": True}, "like:p1"),
        ("like_moment", {"moment": "p1", "liked": False}, "like:p1"),
        ("set_remark", {"contact": "Alice", "remark": "Al"}, "remark:Alice"),
        ("like_moment", {"moment": "p1", "liked": True, "dry_run": True}, None),
    ],
)
def test_the_last_intent_for_one_target_counts(kind, params, key) -> None:
    coalesce = CATALOGUE[kind].coalesce
    assert coalesce is not None
    assert coalesce(params) == key


def test_a_friend_request_is_accepted_once() -> None:
    key = CATALOGUE["accept_friend"].key
    assert key is not None
    assert key({"request": "r1"}) == "friend:r1"
    assert key({"request": "r1", "dry_run": True}) is None


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("send_file", {"to": "Alice"}),
        (
            "send_file",
            {
                "to": "Alice",
                "path": "a",
                "file": {"name": "a", "size": 1, "sha256": "0" * 64},
            },
        ),
        ("publish_moment", {"text": ""}),
        ("publish_moment", {"text": "x", "images": ["a"] * 10}),
        ("share_moment", {"url": "javascript:alert(1)", "text": ""}),
        ("share_moment", {"url": "https://a.example/ b", "text": ""}),
        ("set_remark", {"contact": "Alice", "remark": "two\nlines"}),
        ("add_friend", {"account": "car\tol", "greeting": ""}),
        ("comment_moment", {"moment": "p1", "text": ""}),
        ("revoke_message", {"to": "Alice"}),
        ("forward_message", {"message": "m1", "to": "Bob"}),
        ("like_moment", {"moment": "p1", "liked": True, "often": True}),
    ],
)
def test_what_makes_no_sense_is_refused(kind, params) -> None:
    with pytest.raises(BridgeError) as caught:
        body.params(CATALOGUE[kind], params)
    assert (caught.value.code, caught.value.executed) == ("INVALID_REQUEST", False)
