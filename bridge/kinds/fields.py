"""Fields that several kinds share, with their limits."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bridge.kinds.base import Params

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """`text`, if it can be typed into a field of one line."""
    if _CONTROL.search(text):
        raise ValueError("it must be one line: no line breaks, tabs or control characters")
    return text


ContactName = Annotated[
    str, Field(min_length=1, max_length=200, description="account id, remark or name, exactly")
]
Ident = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(one_line)]
FilePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4096,
        description="a file in one of the allowed folders, absolute or relative to the first",
    ),
]


class Upload(Params):
    """A file that came with the request; made by the server, never by a caller."""

    name: str = Field(min_length=1, max_length=255)
    size: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
