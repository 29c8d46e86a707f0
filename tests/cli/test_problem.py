"""Exit statuses: whether it may have happened is what a script must be able to tell."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.cli.problem import Exit, of_document


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"code": "TIMEOUT", "executed": False, "action_id": "a1"}, Exit.FAILED),
        ({"code": "TIMEOUT", "executed": "running", "action_id": "a1"}, Exit.UNKNOWN),
        ({"code": "TIMEOUT", "executed": None, "action_id": "a1"}, Exit.UNKNOWN),
        ({"code": "SHUTTING_DOWN", "executed": False}, Exit.FAILED),
        ({"code": "SHUTTING_DOWN", "executed": None}, Exit.UNKNOWN),
        ({"code": "STORE_UNAVAILABLE", "executed": None}, Exit.UNKNOWN),
        ({"code": "INTERNAL", "executed": None}, Exit.UNKNOWN),
        ({"code": "UNCERTAIN", "executed": None}, Exit.UNKNOWN),
        ({"code": "VERIFY_FAILED", "executed": True}, Exit.UNKNOWN),
        ({"code": "CONTACT_NOT_FOUND", "executed": None}, Exit.FAILED),
        ({"code": "INVALID_REQUEST", "executed": None}, Exit.FAILED),
        ({"code": "UNAUTHORIZED", "executed": False}, Exit.REFUSED),
        ({"code": "FORBIDDEN"}, Exit.REFUSED),
    ],
)
def test_exit_status(members: dict[str, Any], status: Exit):
    error = of_document({"detail": "words", **members})
    assert error.exit_status is status


def test_a_document_without_words_is_told_all_the_same():
    error = of_document({"title": "Bad Gateway"})
    assert (error.code, error.detail) == ("Bad Gateway", "the bridge gave no reason")
