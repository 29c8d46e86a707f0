"""Kinds that send, revoke and forward messages."""

from __future__ import annotations

from pydantic import Field, model_validator

from bridge.kinds.base import SIGNED_IN, Act, Kind
from bridge.kinds.fields import ContactName, FilePath, Ident, Upload
from bridge.model import Effect, Priority


class SendText(Act):
    """A text for one contact."""

    to: ContactName
    text: str = Field(min_length=1, max_length=100_000)


class SendFile(Act):
    """A file for one contact: by path, or uploaded with the request."""

    to: ContactName
    path: FilePath | None = None
    file: Upload | None = Field(default=None, description="set by the server for an upload")

    @model_validator(mode="after")
    def _one_source(self) -> SendFile:
        if (self.path is None) == (self.file is None):
            raise ValueError("send either `path`, or a multipart body with a `file`")
        return self


class RevokeMessage(Act):
    """A message of one's own to take back."""

    to: ContactName
    message: Ident


class ForwardMessage(Act):
    """A message of one chat to pass on to another contact."""

    from_: ContactName = Field(alias="from")
    message: Ident
    to: ContactName


SEND_TEXT = Kind(
    name="send_text",
    title="Send a text",
    path="/send/text",
    params=SendText,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
    contact_field="to",
)
SEND_FILE = Kind(
    name="send_file",
    title="Send a file",
    path="/send/file",
    params=SendFile,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
    upload="file",
)
REVOKE_MESSAGE = Kind(
    name="revoke_message",
    title="Revoke a message",
    path="/messages/revoke",
    params=RevokeMessage,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.IDEMPOTENT,
    needs=SIGNED_IN,
)
FORWARD_MESSAGE = Kind(
    name="forward_message",
    title="Forward a message",
    path="/messages/forward",
    params=ForwardMessage,
    priority=Priority.NORMAL,
    wait_timeout_ms=15_000,
    effect=Effect.ONCE,
    needs=SIGNED_IN,
)
KINDS = (SEND_TEXT, SEND_FILE, REVOKE_MESSAGE, FORWARD_MESSAGE)
