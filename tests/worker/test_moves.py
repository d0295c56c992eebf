"""The one thing that can be done next for an operation, read off its rows (`runs.worker.moves`)."""

from __future__ import annotations

import datetime as dt
import itertools

import pytest

from runs.models import Round, ToolCall
from runs.round_states import RoundKind, RoundStatus
from runs.run_states import CallPhase
from runs.worker.moves import Move, next_move
from runs.worker.task_facts import TaskFacts


def call(phase: str, *, allowed: bool = False) -> ToolCall:
    return ToolCall(phase=phase, allowed=allowed)


def pause(kind: str, status: str, *, held: bool = False) -> Round:
    return Round(kind=kind, status=status, held=held)


@pytest.mark.parametrize(
    ("phase", "allowed", "rounds", "move"),
    [
        ("prepared", False, [], Move.GATE),
        ("prepared", True, [], Move.SEND),
        ("input_required", True, [], Move.SEND),
        ("input_required", False, [], Move.PARKED),
        ("sent", False, [], Move.RECOVER),
        ("unknown", False, [], Move.PARKED),
        ("prepared", False, [("approval", "pending")], Move.PARKED),
        ("prepared", False, [("approval", "response_validated")], Move.APPLY_APPROVAL),
        ("input_required", False, [("elicitation", "pending")], Move.PARKED),
        ("input_required", False, [("elicitation", "response_validated")], Move.APPLY_ANSWERS),
        ("unknown", False, [("outcome", "pending")], Move.PARKED),
        ("unknown", False, [("outcome", "response_validated")], Move.APPLY_OUTCOME),
        # The answers have been applied and the permission to send them is held.
        ("input_required", True, [("elicitation", "delivery_started")], Move.SEND),
        ("sent", False, [("elicitation", "delivery_started")], Move.RECOVER),
        # A worker that died between sending and hearing: what was asked before does not matter now.
        ("sent", False, [("elicitation", "response_validated")], Move.RECOVER),
    ],
)
def test_the_rows_permit_one_move(
    phase: str, allowed: bool, rounds: list[tuple[str, str]], move: Move
) -> None:
    found, _ = next_move(call(phase, allowed=allowed), [pause(*each) for each in rounds])

    assert found is move


def test_an_answer_is_applied_by_the_round_that_carries_it() -> None:
    started, answered = pause("approval", "delivery_started"), pause("elicitation", "response_validated")

    assert next_move(call("input_required"), [started, answered]) == (Move.APPLY_ANSWERS, answered)


@pytest.mark.parametrize("status", ["pending", "response_validated", "delivery_started"])
def test_a_prompt_of_a_session_that_is_gone_is_recovered_and_never_waited_for(status: str) -> None:
    held = pause("elicitation", status, held=True)

    assert next_move(call("sent"), [held])[0] is Move.RECOVER


def test_one_pending_round_stops_everything_else() -> None:
    rounds = [pause("approval", "response_validated"), pause("elicitation", "pending")]

    assert next_move(call("prepared", allowed=True), rounds) == (Move.PARKED, None)


def test_nothing_is_sent_without_a_permission_whatever_the_rows_say() -> None:
    kinds, states = [kind.value for kind in RoundKind], [status.value for status in RoundStatus]
    for phase, kind, state, held in itertools.product(CallPhase, kinds, states, (True, False)):
        if kind in ("question", "plan"):
            continue  # of the agent itself; no operation waits on one
        move, _ = next_move(call(phase.value), [pause(kind, state, held=held)])
        assert move is not Move.SEND, (phase, kind, state, held)


@pytest.mark.parametrize(
    ("phase", "rounds", "move"),
    [
        ("sent", [], Move.FOLLOW),
        ("input_required", [("elicitation", "pending")], Move.PARKED),
        ("input_required", [("elicitation", "response_validated")], Move.FOLLOW),
        # The worker died while the answer was on its way: the server is asked whether it has it.
        ("input_required", [("elicitation", "delivery_started")], Move.FOLLOW),
        # The task was lost, and a person has said what became of it.
        ("unknown", [("outcome", "response_validated")], Move.APPLY_OUTCOME),
        ("unknown", [("outcome", "pending")], Move.PARKED),
    ],
)
def test_a_call_that_was_answered_with_a_task_is_followed(
    phase: str, rounds: list[tuple[str, str]], move: Move
) -> None:
    row = call(phase)
    row.wire = {"task": TaskFacts(id="t-1", server="s", begun_at=dt.datetime.now(dt.UTC)).stored()}

    found, _ = next_move(row, [pause(*each) for each in rounds])

    assert found is move
