"""Which state may follow which, by whom, and which event tells of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.lifecycle import RULES, UNSTARTED, Actor, InvalidTransition, check
from bridge.model import FINAL, State

STATES = st.sampled_from([None, *State])
NAMES = """
    queued held activated scheduled started retrying paused resumed edited released
    succeeded failed uncertain resolved cancelled expired superseded
"""
EVENTS = {f"action.{name}" for name in NAMES.split()}


def allowed(before: State | None, after: State, by: Actor) -> bool:
    try:
        check(before, after, by)
    except InvalidTransition:
        return False
    return True


def test_each_transition_of_an_actor_stands_once_and_tells_a_known_event():
    assert len({(r.before, r.after, r.by) for r in RULES}) == len(RULES)
    assert {rule.event for rule in RULES} <= EVENTS


def test_every_state_can_be_reached_and_every_unfinished_one_be_left():
    assert {rule.after for rule in RULES} == set(State)
    for state in set(State) - FINAL:
        assert any(rule.before is state and rule.after in FINAL for rule in RULES), state


@given(STATES, st.sampled_from(State), st.sampled_from(Actor))
def test_only_a_worker_starts_and_only_what_is_pending(before, after, by):
    if after is State.RUNNING and allowed(before, after, by):
        assert (before, by) == (State.PENDING, Actor.WORKER)


@given(st.sampled_from(sorted(FINAL)), st.sampled_from(State), st.sampled_from(Actor))
def test_only_a_person_brings_back_what_has_ended(before, after, by):
    if allowed(before, after, by):
        assert by is Actor.OPERATOR
        assert before not in {State.SUCCEEDED, State.SUPERSEDED}


@given(STATES, st.sampled_from(State))
def test_a_worker_touches_only_what_it_claims_or_runs(before, after):
    if allowed(before, after, Actor.WORKER):
        assert before in {State.PENDING, State.RUNNING}


@given(st.sampled_from(State))
def test_an_effect_is_never_concluded_for_what_never_ran(after):
    for before in UNSTARTED:
        for by in Actor:
            if after in {State.SUCCEEDED, State.UNCERTAIN}:
                assert not allowed(before, after, by)


@given(STATES, st.sampled_from(State), st.sampled_from(Actor))
def test_what_is_created_waits_or_is_held(before, after, by):
    if before is None and allowed(before, after, by):
        assert by is Actor.CALLER
        assert after in {State.HELD, State.SCHEDULED, State.PENDING}


def test_a_refusal_names_the_transition():
    with pytest.raises(InvalidTransition, match="succeeded → pending is not for the operator"):
        check(State.SUCCEEDED, State.PENDING, Actor.OPERATOR)


OPERATOR = {
    "activate": ({State.HELD}, {State.PENDING, State.SCHEDULED}, "action.activated"),
    "cancel": (UNSTARTED, {State.CANCELLED}, "action.cancelled"),
    "pause": ({State.SCHEDULED, State.PENDING}, {State.PAUSED}, "action.paused"),
    "resume": ({State.PAUSED}, {State.PENDING, State.SCHEDULED}, "action.resumed"),
    "retry": (
        {State.FAILED, State.CANCELLED, State.EXPIRED, State.UNCERTAIN},
        {State.PENDING},
        "action.queued",
    ),
    "release": ({State.RUNNING}, {State.PENDING}, "action.released"),
    "mark_done": ({State.UNCERTAIN}, {State.SUCCEEDED}, "action.resolved"),
}


@pytest.mark.parametrize("operation", OPERATOR)
def test_an_operator_may_do_what_the_operation_says(operation):
    befores, afters, event = OPERATOR[operation]
    for before in befores:
        for after in afters:
            assert check(before, after, Actor.OPERATOR).event == event


def test_an_operator_may_do_nothing_else_but_move_a_due_time():
    named = {(b, a) for befores, afters, _ in OPERATOR.values() for b in befores for a in afters}
    moved = {(State.SCHEDULED, State.PENDING), (State.PENDING, State.SCHEDULED)}
    assert {(r.before, r.after) for r in RULES if r.by is Actor.OPERATOR} == named | moved
