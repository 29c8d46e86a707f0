"""Parsing of headers and query values, by example and by property."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from routes import headers
from routes.headers import Prefer

VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))
TOKEN = string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~"
OTHER = st.text(TOKEN, min_size=1).filter(lambda n: n.lower() not in {"wait", "respond-async"})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Prefer()),
        ([""], Prefer()),
        (["respond-async"], Prefer(respond_async=True)),
        (["Respond-Async"], Prefer(respond_async=True)),
        (["respond-async;x=1"], Prefer(respond_async=True)),
        (["wait=10"], Prefer(wait=10.0)),
        (['wait="10"'], Prefer(wait=10.0)),
        (["wait = 10"], Prefer(wait=10.0)),
        (["wait=0"], Prefer(wait=0.0)),
        (["respond-async, wait=10"], Prefer(True, 10.0)),
        (["respond-async", "wait=10"], Prefer(True, 10.0)),
        (["wait=10, wait=20"], Prefer(wait=10.0)),
        (["wait=ten"], Prefer()),
        (["wait=-1"], Prefer()),
        (["wait=1.5"], Prefer()),
        (["wait"], Prefer()),
        (['foo="respond-async, wait=5"'], Prefer()),
        (['foo="a\\"b, wait=5", respond-async'], Prefer(respond_async=True)),
        (["handling=lenient; a=b, respond-async"], Prefer(respond_async=True)),
        (["@@@, respond-async"], Prefer(respond_async=True)),
    ],
)
def test_prefer(values: list[str], expected: Prefer) -> None:
    assert headers.prefer(values) == expected


@given(
    st.lists(OTHER, max_size=4),
    st.booleans(),
    st.none() | st.integers(0, int(headers.MAX_WAIT)),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_prefer_is_found_among_others(
    others: list[str], is_async: bool, wait: int | None, order: object, split: bool
) -> None:
    parts = [*others, *(["respond-async"] if is_async else [])]
    parts += [] if wait is None else [f"wait={wait}"]
    order.shuffle(parts)  # type: ignore[attr-defined]
    values = parts if split else [", ".join(parts)]
    assert headers.prefer(values) == Prefer(is_async, None if wait is None else float(wait))


@given(st.lists(st.text(max_size=60), max_size=3))
def test_prefer_survives_anything(values: list[str]) -> None:
    try:
        found = headers.prefer(values)
    except BridgeError as error:
        assert error.code == "INVALID_REQUEST"  # noqa: PT017
    else:
        assert found.wait is None or 0 <= found.wait <= headers.MAX_WAIT


def test_prefer_takes_no_time_on_hostile_input() -> None:
    assert headers.prefer(['a="' + "\\" * 4000, "a" * 8000, ";" * 8000, "=" * 8000]) == Prefer()


@given(st.text(VISIBLE, min_size=1, max_size=191))
def test_visible_keys_are_taken_as_they_are(key: str) -> None:
    assert headers.idempotency_key(key) == key


@given(
    st.text(max_size=300).filter(
        lambda key: not 1 <= len(key) <= 191 or any(char not in VISIBLE for char in key)
    )
)
def test_other_keys_are_refused(key: str) -> None:
    with pytest.raises(BridgeError, match="INVALID_REQUEST"):
        headers.idempotency_key(key)


def test_no_key() -> None:
    assert headers.idempotency_key(None) is None


@given(st.text(VISIBLE.replace(":", ""), min_size=1, max_size=100), st.integers(0, 10**18 - 1))
def test_since_is_the_inverse_of_how_hello_tells_it(epoch: str, seq: int) -> None:
    assert headers.since(f"{epoch}:{seq}") == (epoch, seq)


@pytest.mark.parametrize("value", ["", "e1", "e1:", ":1", "e1:-1", "e1:x", "e1:" + "9" * 19])
def test_other_since_is_refused(value: str) -> None:
    with pytest.raises(BridgeError, match="INVALID_REQUEST"):
        headers.since(value)


@given(st.integers(0, 10**18 - 1))
def test_revision_is_taken_in_every_spelling(revision: int) -> None:
    for spelling in (f"{revision}", f'"{revision}"', f'W/"{revision}"', f" {revision} "):
        assert headers.revision(spelling) == revision


def test_every_trace_id_is_new() -> None:
    assert headers.trace_id(None, None) != headers.trace_id(None, "00-xyz")
