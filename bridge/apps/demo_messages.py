"""Files, revoking, forwarding and remarks in the demo app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bridge.apps.demo_act import PanelFlow
from bridge.apps.demo_panels import Panels
from bridge.demoapp import titles
from bridge.demoapp.contacts import SEPARATOR
from bridge.errors import BridgeError
from bridge.flow import FlowContext
from bridge.kinds import ForwardMessage, RevokeMessage, SendFile, SetRemark
from bridge.model import Json

SUBMIT = ("ctrl", "Return")


class SendFileFlow(PanelFlow[SendFile]):
    """The kind `send_file`."""

    answers: ClassVar = {"message": "message", "to": "contact", "size": "size", "sha256": "sha256"}

    async def work(self, ctx: FlowContext[SendFile], panels: Panels) -> Mapping[str, Json]:
        """Give the app the file's URI, and see that it read the very same content."""
        async with ctx.open_file(ctx.params.path, ctx.params.file) as file:
            target = await self.chat(ctx, panels, ctx.params.to)
            await panels.form(
                "F7", name=titles.SEND_FILE, about=[target.label],
                parts=[titles.files_part("file", [])],
            )  # fmt: skip
            part = titles.files_part("file", [(file.size, file.sha256)])
            await panels.fill(0, file.path.as_uri(), part)
            return await self.press(
                ctx,
                panels,
                *SUBMIT,
                effect="file_sent",
                facts={
                    "contact": target.id,
                    "name": file.path.name,
                    "size": file.size,
                    "sha256": file.sha256,
                },
                to=target.id,
            )


class RevokeFlow(PanelFlow[RevokeMessage]):
    """The kind `revoke_message`."""

    answers: ClassVar = {"message": "message", "to": "contact"}

    async def work(self, ctx: FlowContext[RevokeMessage], panels: Panels) -> Mapping[str, Json]:
        """Find the message in the chat's history and take it back."""
        message = ctx.params.message
        target = await self.chat(ctx, panels, ctx.params.to)
        await panels.open("F3", name=titles.HISTORY, about=[target.label])
        label = await panels.find(message, "message")
        if label == f"{message} revoked":
            return await self.already(panels, message=message, to=target.id)
        await panels.form("F8", name=titles.REVOKE, about=[message, target.label], parts=[])
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="message_revoked",
            facts={"contact": target.id, "message": message},
            to=target.id,
        )


class ForwardFlow(PanelFlow[ForwardMessage]):
    """The kind `forward_message`."""

    answers: ClassVar = {"message": "forwarded", "to": "contact"}

    async def work(self, ctx: FlowContext[ForwardMessage], panels: Panels) -> Mapping[str, Json]:
        """Find the message in one chat's history, then the contact it is for."""
        message = ctx.params.message
        source = await self.chat(ctx, panels, ctx.params.from_)
        await panels.open("F3", name=titles.HISTORY, about=[source.label])
        await panels.find(message, "message")
        await panels.form("F9", name=titles.FORWARD, about=[message, source.label], parts=["to"])
        target = await panels.choose("to", ctx.params.to)
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="message_forwarded",
            facts={"contact": target.id, "message": message},
            to=target.id,
        )


class RemarkFlow(PanelFlow[SetRemark]):
    """The kind `set_remark`."""

    answers: ClassVar = {"contact": "contact", "remark": "remark"}

    async def work(self, ctx: FlowContext[SetRemark], panels: Panels) -> Mapping[str, Json]:
        """Write the remark of the contact whose chat is open."""
        remark = ctx.params.remark
        if SEPARATOR in remark:
            detail = f"a remark cannot have {SEPARATOR!r} in it in this app"
            raise BridgeError("INVALID_REQUEST", detail, executed=False)
        target = await self.chat(ctx, panels, ctx.params.contact)
        if target.remark == remark:
            return await self.already(panels, contact=target.id, remark=remark)
        await panels.form(
            "F2", name=titles.REMARK, about=[target.label], parts=[titles.text_part("remark", "")]
        )
        await panels.fill(0, remark, titles.text_part("remark", remark))
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="remark_set",
            facts={"contact": target.id, "remark": remark},
            to=target.id,
        )
