"""JSON bodies: whatever a JSON encoder writes comes back; whatever bytes come, nothing breaks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.kinds import SCREENSHOT, SEND_TEXT
from routes import body

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_json_comes_back(value: object) -> None:
    assert body.parse(json.dumps(value).encode()) == value
    assert body.parse(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_clear_error(data: bytes) -> None:
    try:
        body.parse(data)
    except BridgeError as error:
        assert error.code in {"MALFORMED_JSON", "INVALID_REQUEST"}  # noqa: PT017


@pytest.mark.parametrize(("depth", "good"), [(31, True), (32, False), (100_000, False)])
def test_depth_is_limited(depth: int, good: bool) -> None:
    data = b"[" * depth + b"1" + b"]" * depth
    if good:
        body.parse(data)
    else:
        with pytest.raises(BridgeError, match="deeper"):
            body.parse(data)


def test_params_are_canonical() -> None:
    given = {"region": {"x": 0, "y": 1, "width": 2, "height": 3}}
    assert body.params(SCREENSHOT, given) == {"window": None, "format": "png", **given}


def test_length_of_a_text_is_limited() -> None:
    body.params(SEND_TEXT, {"to": "A", "text": "x" * 100_000})
    with pytest.raises(BridgeError, match="text"):
        body.params(SEND_TEXT, {"to": "A", "text": "x" * 100_001})
