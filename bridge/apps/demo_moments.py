"""Moments in the demo app: publish, share, delete, forward, like, comment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, ClassVar, TypeVar

from bridge.apps.demo_act import PanelFlow
from bridge.apps.demo_messages import SUBMIT
from bridge.apps.demo_panels import Panels
from bridge.demoapp import titles
from bridge.flow import FlowContext
from bridge.kinds import CommentMoment, ForwardMoment, LikeMoment, OneMoment
from bridge.kinds import PublishMoment as Publish
from bridge.kinds import ShareMoment as Share
from bridge.model import Json

M = TypeVar("M", bound=OneMoment)


class PublishFlow(PanelFlow[Publish]):
    """The kind `publish_moment`."""

    answers: ClassVar = {"moment": "moment"}

    async def work(self, ctx: FlowContext[Publish], panels: Panels) -> Mapping[str, Json]:
        """Write the text, choose the images, see that the app read the same."""
        text = ctx.params.text
        async with AsyncExitStack() as stack:
            images = [
                await stack.enter_async_context(ctx.open_file(path, None))
                for path in ctx.params.images
            ]
            await panels.open("F6", name=titles.MOMENTS)
            await panels.form(
                "F6", name=titles.PUBLISH, about=[],
                parts=[titles.text_part("text", ""), titles.files_part("images", [])],
            )  # fmt: skip
            await panels.fill(0, text, titles.text_part("text", text))
            await panels.tab()
            chosen = titles.files_part("images", [(i.size, i.sha256) for i in images])
            await panels.fill(1, "\n".join(image.path.as_uri() for image in images), chosen)
            said = [{"name": i.path.name, "size": i.size, "sha256": i.sha256} for i in images]
            return await self.press(
                ctx,
                panels,
                *SUBMIT,
                effect="moment_published",
                facts={"text": text, "images": said},
            )


class ShareFlow(PanelFlow[Share]):
    """The kind `share_moment`."""

    answers: ClassVar = {"moment": "moment"}

    async def work(self, ctx: FlowContext[Share], panels: Panels) -> Mapping[str, Json]:
        """Write the link and the text."""
        url, text = ctx.params.url, ctx.params.text
        await panels.open("F6", name=titles.MOMENTS)
        await panels.form(
            "F7", name=titles.SHARE, about=[],
            parts=[titles.text_part("url", ""), titles.text_part("text", "")],
        )  # fmt: skip
        await panels.fill(0, url, titles.text_part("url", url))
        await panels.tab()
        await panels.fill(1, text, titles.text_part("text", text))
        return await self.press(
            ctx, panels, *SUBMIT, effect="moment_shared", facts={"url": url, "text": text}
        )


class OneMomentFlow(PanelFlow[M]):
    """A flow about one post, which is found by its id first."""

    async def work(self, ctx: FlowContext[M], panels: Panels) -> Mapping[str, Json]:
        """Find the post, then do what is asked."""
        await panels.open("F6", name=titles.MOMENTS)
        label = await panels.find(ctx.params.moment, "moment")
        return await self.at(ctx, panels, label)

    async def at(self, ctx: FlowContext[M], panels: Panels, label: str) -> Mapping[str, Json]:
        """Do it with the post that is highlighted."""
        raise NotImplementedError


class DeleteMomentFlow(OneMomentFlow[OneMoment]):
    """The kind `delete_moment`."""

    answers: ClassVar = {"moment": "moment"}

    async def at(
        self, ctx: FlowContext[OneMoment], panels: Panels, label: str
    ) -> Mapping[str, Json]:
        """Ask the app to delete it and confirm."""
        moment = ctx.params.moment
        await panels.form("F8", name=titles.DELETE_MOMENT, about=[moment], parts=[])
        return await self.press(
            ctx, panels, *SUBMIT, effect="moment_deleted", facts={"moment": moment}
        )


class ForwardMomentFlow(OneMomentFlow[ForwardMoment]):
    """The kind `forward_moment`."""

    answers: ClassVar = {"moment": "moment", "message": "forwarded", "to": "contact"}

    async def at(
        self, ctx: FlowContext[ForwardMoment], panels: Panels, label: str
    ) -> Mapping[str, Json]:
        """Choose exactly this contact and send."""
        moment = ctx.params.moment
        await panels.form("F5", name=titles.FORWARD_MOMENT, about=[moment], parts=["to"])
        target = await panels.choose("to", ctx.params.to)
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="moment_forwarded",
            facts={"moment": moment, "contact": target.id},
            to=target.id,
        )


class LikeFlow(OneMomentFlow[LikeMoment]):
    """The kind `like_moment`: the key toggles, so it is pressed only where it has to be."""

    answers: ClassVar = {"moment": "moment"}

    async def at(
        self, ctx: FlowContext[LikeMoment], panels: Panels, label: str
    ) -> Mapping[str, Json]:
        """Toggle, unless it is as wanted already."""
        moment, liked = ctx.params.moment, ctx.params.liked
        if label.rpartition(" ")[2] == ("liked" if liked else "unliked"):
            return await self.already(panels, moment=moment, liked=liked)
        effect = "moment_liked" if liked else "moment_unliked"
        return await self.press(
            ctx, panels, "F2", effect=effect, facts={"moment": moment}, closes=False
        )

    def result(self, entry: Mapping[str, Any]) -> dict[str, Json]:
        """With what it is now."""
        return {**super().result(entry), "liked": entry["effect"] == "moment_liked"}


class CommentFlow(OneMomentFlow[CommentMoment]):
    """The kind `comment_moment`."""

    answers: ClassVar = {"moment": "moment", "comment": "comment"}

    async def at(
        self, ctx: FlowContext[CommentMoment], panels: Panels, label: str
    ) -> Mapping[str, Json]:
        """Write it and send it."""
        moment, text = ctx.params.moment, ctx.params.text
        empty = titles.text_part("text", "")
        await panels.form("F3", name=titles.COMMENT, about=[moment], parts=[empty])
        await panels.fill(0, text, titles.text_part("text", text))
        return await self.press(
            ctx,
            panels,
            *SUBMIT,
            effect="moment_commented",
            facts={"moment": moment, "text": text},
        )
