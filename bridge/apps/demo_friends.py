"""Adding contacts and accepting friend requests in the demo app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bridge.apps.demo_act import PanelFlow
from bridge.apps.demo_messages import SUBMIT
from bridge.apps.demo_panels import Panels
from bridge.apps.demo_view import Named, parse_label
from bridge.demoapp import titles
from bridge.errors import BridgeError
from bridge.flow import FlowContext
from bridge.kinds import AcceptFriend, AddFriend
from bridge.model import Json

_HEAD = "account: "
_KNOWN = "a contact already, "
_NOBODY = "nobody called"


class AddFriendFlow(PanelFlow[AddFriend]):
    """The kind `add_friend`."""

    answers: ClassVar = {"account": "contact"}

    async def work(self, ctx: FlowContext[AddFriend], panels: Panels) -> Mapping[str, Json]:
        """Have the app look the account up, write the greeting, add."""
        account, greeting = ctx.params.account, ctx.params.greeting
        empty = titles.text_part("greeting", "")
        await panels.form("F5", name=titles.ADD_FRIEND, about=[], parts=["account", empty])
        await ctx.hands.paste_text(panels.top.window.id, account)
        said, found = await self._looked_up(panels, account, empty)
        if found.id != account:
            raise BridgeError("VERIFY_FAILED", "the app found another account", executed=False)
        panels.top.parts[0] = said
        await panels.tab()
        await panels.fill(1, greeting, titles.text_part("greeting", greeting))
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="friend_added",
            facts={"contact": account, "greeting": greeting},
            to=account,
        )

    async def _looked_up(self, panels: Panels, account: str, empty: str) -> tuple[str, Named]:
        """What the title says of the account, and who that is.

        CONTACT_NOT_FOUND when there is nobody, INVALID_STATE when it is a contact already.
        """
        nobody = titles.text_part(f"{_HEAD}{_NOBODY}", account)

        def answer(title: str) -> tuple[str, Named | None] | None:
            said = title.removeprefix(f"{titles.ADD_FRIEND} - ").removesuffix(f" - {empty}")
            if said == nobody:
                return said, None
            if not said.startswith(_HEAD) or said.startswith(f"{_HEAD}{_NOBODY}"):
                return None
            found = parse_label(said.removeprefix(_HEAD).removeprefix(_KNOWN))
            return None if found is None else (said, found)

        said, found = await panels.until("the account", answer)
        if found is None:
            detail = f"there is no account {account!r}"
            raise BridgeError("CONTACT_NOT_FOUND", detail, executed=False)
        if said.startswith(f"{_HEAD}{_KNOWN}"):
            raise BridgeError("INVALID_STATE", f"{account!r} is a contact already", executed=False)
        return said, found


class AcceptFriendFlow(PanelFlow[AcceptFriend]):
    """The kind `accept_friend`."""

    answers: ClassVar = {"request": "request", "account": "contact"}

    async def work(self, ctx: FlowContext[AcceptFriend], panels: Panels) -> Mapping[str, Json]:
        """Find the request by its id and accept it."""
        request = ctx.params.request
        await panels.open("F4", name=titles.REQUESTS)
        label = await panels.find(request, "friend request")
        who, _, state = label.removeprefix(f"{request} ").rpartition(" ")
        asking = parse_label(who)
        if asking is None:
            raise BridgeError("UI_ERROR", "the app shows a request that cannot be read")
        if state == "accepted":
            return await self.already(panels, request=request, account=asking.id)
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="friend_accepted",
            facts={"request": request, "contact": asking.id},
            to=asking.id,
        )
