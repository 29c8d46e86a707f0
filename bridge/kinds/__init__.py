"""The catalogue of action kinds: params, defaults, what each needs, and where its route lies.

A kind is data. An app adapter says how a kind is carried out (its `flows`) and may bring kinds
of its own; routes, OpenAPI and the scheduler read what they need from here.
"""

from __future__ import annotations

from collections.abc import Mapping

from bridge.kinds import friends, messages, moments, seat
from bridge.kinds.base import (
    DISPLAY_AND_APP,
    SIGNED_IN,
    Act,
    Kind,
    Params,
    canonical,
    per_target,
    request_hash,
)
from bridge.kinds.fields import Upload, one_line
from bridge.kinds.friends import (
    ACCEPT_FRIEND,
    ADD_FRIEND,
    SET_REMARK,
    AcceptFriend,
    AddFriend,
    SetRemark,
)
from bridge.kinds.messages import (
    FORWARD_MESSAGE,
    REVOKE_MESSAGE,
    SEND_FILE,
    SEND_TEXT,
    ForwardMessage,
    RevokeMessage,
    SendFile,
    SendText,
)
from bridge.kinds.moments import (
    COMMENT_MOMENT,
    DELETE_MOMENT,
    FORWARD_MOMENT,
    LIKE_MOMENT,
    PUBLISH_MOMENT,
    SHARE_MOMENT,
    CommentMoment,
    ForwardMoment,
    LikeMoment,
    OneMoment,
    PublishMoment,
    ShareMoment,
)
from bridge.kinds.seat import (
    AUTOFIX,
    CAPTURE_QR,
    LOGOUT,
    RESTART_APP,
    SCREENSHOT,
    Autofix,
    CaptureQr,
    Logout,
    RestartApp,
    ScreenRegion,
    Screenshot,
)

CATALOGUE: Mapping[str, Kind] = {
    kind.name: kind for kind in (*messages.KINDS, *friends.KINDS, *moments.KINDS, *seat.KINDS)
}
"""The kinds that every bridge knows, whether its app supports them or not."""

__all__ = [
    "ACCEPT_FRIEND",
    "ADD_FRIEND",
    "AUTOFIX",
    "CAPTURE_QR",
    "CATALOGUE",
    "COMMENT_MOMENT",
    "DELETE_MOMENT",
    "DISPLAY_AND_APP",
    "FORWARD_MESSAGE",
    "FORWARD_MOMENT",
    "LIKE_MOMENT",
    "LOGOUT",
    "PUBLISH_MOMENT",
    "RESTART_APP",
    "REVOKE_MESSAGE",
    "SCREENSHOT",
    "SEND_FILE",
    "SEND_TEXT",
    "SET_REMARK",
    "SHARE_MOMENT",
    "SIGNED_IN",
    "AcceptFriend",
    "Act",
    "AddFriend",
    "Autofix",
    "CaptureQr",
    "CommentMoment",
    "ForwardMessage",
    "ForwardMoment",
    "Kind",
    "LikeMoment",
    "Logout",
    "OneMoment",
    "Params",
    "PublishMoment",
    "RestartApp",
    "RevokeMessage",
    "ScreenRegion",
    "Screenshot",
    "SendFile",
    "SendText",
    "SetRemark",
    "ShareMoment",
    "Upload",
    "canonical",
    "one_line",
    "per_target",
    "request_hash",
]
