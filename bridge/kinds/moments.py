"""Kinds about moments: the posts that contacts see."""

from __future__ import annotations

from pydantic import Field, model_validator

from bridge.kinds.base import SIGNED_IN, Act, Kind, per_target
from bridge.kinds.fields import ContactName, FilePath, Ident
from bridge.model import Effect, Priority


class PublishMoment(Act):
    """A post: a text, images, or both."""

    text: str = Field(max_length=10_000)
    images: list[FilePath] = Field(default_factory=list, max_length=9)

    @model_validator(mode="after")
    def _something(self) -> PublishMoment:
        if not self.text and not self.images:
            raise ValueError("a moment needs a text or an image")
        return self


class ShareMoment(Act):
    """A link as a post."""

    url: str = Field(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f\x7f]+$")
    text: str = Field(default="", max_length=10_000)


class OneMoment(Act):
    """A post, by the id that publishing answered."""

    moment: Ident


class ForwardMoment(OneMoment):
    """A post to send to a contact."""

    to: ContactName


class LikeMoment(OneMoment):
    """Whether one likes a post."""

    liked: bool = True


class CommentMoment(OneMoment):
    """What one has to say about a post."""

    text: str = Field(min_length=1, max_length=10_000)


PUBLISH_MOMENT = Kind(
    name="publish_moment",
    title="Publish a moment",
    path="/moments/publish",
    params=PublishMoment,
    priority=Priority.NORMAL,
    wait_timeout_ms=30_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
)
SHARE_MOMENT = Kind(
    name="share_moment",
    title="Share a link as a moment",
    path="/moments/share",
    params=ShareMoment,
    priority=Priority.NORMAL,
    wait_timeout_ms=30_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
)
DELETE_MOMENT = Kind(
    name="delete_moment",
    title="Delete a moment",
    path="/moments/delete",
    params=OneMoment,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.IDEMPOTENT,
    needs=SIGNED_IN,
)
FORWARD_MOMENT = Kind(
    name="forward_moment",
    title="Forward a moment to a contact",
    path="/moments/forward",
    params=ForwardMoment,
    priority=Priority.NORMAL,
    wait_timeout_ms=30_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
)
LIKE_MOMENT = Kind(
    name="like_moment",
    title="Like a moment, or no longer",
    path="/moments/like",
    params=LikeMoment,
    priority=Priority.LOW,
    wait_timeout_ms=15_000,
    effect=Effect.IDEMPOTENT,
    needs=SIGNED_IN,
    coalesce=per_target("like", "moment"),
)
COMMENT_MOMENT = Kind(
    name="comment_moment",
    title="Comment on a moment",
    path="/moments/comment",
    params=CommentMoment,
    priority=Priority.LOW,
    wait_timeout_ms=15_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
)
KINDS = (
    PUBLISH_MOMENT,
    SHARE_MOMENT,
    DELETE_MOMENT,
    FORWARD_MOMENT,
    LIKE_MOMENT,
    COMMENT_MOMENT,
)
