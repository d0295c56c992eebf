"""The states of a turn and what an API client is told about them (design section 2, m8tes-http 2)."""

from __future__ import annotations

import itertools

import pytest

from runs.errors import StateConflict
from runs.run_states import (
    TURN_TRANSITIONS,
    CallPhase,
    HumanInput,
    Outcome,
    PermissionMode,
    TurnStatus,
    api_status,
    check_turn_transition,
    stricter,
)

UNFINISHED = [status for status in TurnStatus if status is not TurnStatus.FINISHED]


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("created", "running"),
        ("queued", "running"),
        ("starting", "running"),
        ("idle", "running"),
        ("running_turn", "running"),
        ("waiting_for_input", "awaiting_approval"),
        ("closing", "running"),
    ],
)
def test_an_unfinished_turn_is_running_or_awaiting_approval(status: str, word: str) -> None:
    assert api_status(TurnStatus(status), None) == word


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        ("completed", "completed"),
        ("failed", "failed"),
        ("timed_out", "failed"),
        ("cancelled", "cancelled"),
        ("interrupted", "failed"),
    ],
)
def test_a_finished_turn_shows_its_outcome_in_one_of_three_words(outcome: str, word: str) -> None:
    assert api_status(TurnStatus.FINISHED, Outcome(outcome)) == word


def test_finished_and_an_outcome_always_come_together() -> None:
    with pytest.raises(ValueError, match="finished"):
        api_status(TurnStatus.FINISHED, None)
    for status in UNFINISHED:
        with pytest.raises(ValueError, match=status.value):
            api_status(status, Outcome.COMPLETED)


def test_the_life_of_a_turn_with_one_pause_is_permitted_step_by_step() -> None:
    life = ["created", "queued", "starting", "idle", "running_turn", "waiting_for_input", "running_turn"]
    for old, new in itertools.pairwise([*life, "closing", "finished"]):
        check_turn_transition(TurnStatus(old), TurnStatus(new))


@pytest.mark.parametrize("status", UNFINISHED)
def test_every_unfinished_turn_can_end_but_none_can_stay_or_start_anew(status: TurnStatus) -> None:
    check_turn_transition(status, TurnStatus.FINISHED)
    for impossible in (status, TurnStatus.CREATED):
        with pytest.raises(StateConflict) as refused:
            check_turn_transition(status, impossible)
        assert refused.value.details == {"status": status.value, "wanted": impossible.value}


def test_a_finished_turn_never_changes() -> None:
    assert TURN_TRANSITIONS[TurnStatus.FINISHED] == frozenset()
    assert set(TURN_TRANSITIONS) == set(TurnStatus)


def test_only_a_turn_at_work_starts_to_wait_for_input() -> None:
    before = {status for status, after in TURN_TRANSITIONS.items() if TurnStatus.WAITING_FOR_INPUT in after}
    assert before == {TurnStatus.RUNNING_TURN}


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("autonomous", "approval", "approval"),
        ("autonomous", "plan", "plan"),
        ("approval", "plan", "plan"),
        ("plan", "plan", "plan"),
        ("autonomous", "autonomous", "autonomous"),
    ],
)
def test_the_stricter_of_two_modes_does_not_depend_on_their_order(a: str, b: str, result: str) -> None:
    assert stricter(PermissionMode(a), PermissionMode(b)) == result
    assert stricter(PermissionMode(b), PermissionMode(a)) == result


@pytest.mark.parametrize(
    "member",
    [*TurnStatus, *Outcome, *PermissionMode, *HumanInput, *CallPhase],
    ids=lambda member: member.value,
)
def test_every_state_carries_a_sentence_and_is_its_stored_value(member: TurnStatus) -> None:
    assert member.describe.endswith(".")
    assert type(member)(member.value) is member
    assert f"{member}" == member.value
