"""Kinds about contacts: remarks, adding, accepting."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from bridge.kinds.base import SIGNED_IN, Act, Kind, per_target
from bridge.kinds.fields import ContactName, Ident, one_line
from bridge.model import Effect, Priority


class SetRemark(Act):
    """What a contact is to be called; an empty remark brings the name back."""

    contact: ContactName
    remark: Annotated[str, Field(max_length=100), AfterValidator(one_line)]


class AddFriend(Act):
    """Ask an account to become a contact."""

    account: Ident
    greeting: str = Field(default="", max_length=500)


class AcceptFriend(Act):
    """A friend request that has arrived."""

    request: Ident


SET_REMARK = Kind(
    name="set_remark",
    title="Set a contact's remark",
    path="/friends/remark",
    params=SetRemark,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.IDEMPOTENT,
    needs=SIGNED_IN,
    coalesce=per_target("remark", "contact"),
)
ADD_FRIEND = Kind(
    name="add_friend",
    title="Add a contact",
    path="/friends/add",
    params=AddFriend,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
)
ACCEPT_FRIEND = Kind(
    name="accept_friend",
    title="Accept a friend request",
    path="/friends/accept",
    params=AcceptFriend,
    priority=Priority.HIGH,
    wait_timeout_ms=30_000,
    effect=Effect.IDEMPOTENT,
    needs=SIGNED_IN,
    key=per_target("friend", "request"),
)
KINDS = (SET_REMARK, ADD_FRIEND, ACCEPT_FRIEND)
