"""What an error before the commit point makes of its action."""

from __future__ import annotations

import pytest

from bridge.errors import BridgeError
from bridge.outcome import Fail, Retry, of_error


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        ("NOT_LOGGED_IN", False),
        ("APP_NOT_READY", False),
        ("DISPLAY_DEAD", False),
        ("FOCUS_LOST", True),
    ],
)
def test_a_seat_that_changed_costs_no_attempt(code, counts):
    outcome = of_error(BridgeError(code, "why"), unhealthy=False)
    assert isinstance(outcome, Retry)
    assert outcome.counts is counts


def test_an_app_that_was_not_well_costs_no_attempt_either():
    outcome = of_error(BridgeError("FOCUS_LOST", "why"), unhealthy=True)
    assert isinstance(outcome, Retry)
    assert outcome.counts is False


@pytest.mark.parametrize("code", ["CONTACT_NOT_FOUND", "INVALID_STATE", "UNSUPPORTED_BY_APP"])
def test_what_no_other_try_can_change_fails_at_once(code):
    assert isinstance(of_error(BridgeError(code, "why"), unhealthy=True), Fail)
