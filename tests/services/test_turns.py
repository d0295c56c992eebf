"""The life of a turn: its moves, its one end, and what the end closes (design section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from runs import control, turns
from runs.errors import StateConflict
from runs.models import Event, Round, Run, Step, ToolCall
from runs.run_states import Outcome, TurnStatus

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]


def call_of(run: Run, phase: str, **fields: Any) -> ToolCall:
    seq = run.steps.count() + 1
    step = Step.objects.create(run=run, turn=run.turns.get(), seq=seq, kind="call", path=f"s{seq}")
    return ToolCall.objects.create(
        step=step,
        server_name="desk",
        operation="tool",
        name="refund",
        asked_digest="x",
        phase=phase,
        **fields,
    )


def test_a_turn_that_starts_notes_when_and_takes_its_run_along(make_run: MakeRun) -> None:
    run = make_run()
    turn = run.turns.get()

    turns.set_status(run, turn, TurnStatus.RUNNING_TURN)

    started = turn.started_at
    assert started is not None
    assert (turn.status, Run.objects.get(pk=run.pk).status) == ("running_turn", "running_turn")
    turns.set_status(run, turn, TurnStatus.WAITING_FOR_INPUT)
    turns.set_status(run, turn, TurnStatus.RUNNING_TURN)
    assert turn.started_at == started


def test_a_move_that_the_states_do_not_know_is_refused(make_run: MakeRun) -> None:
    run = make_run()
    turn = run.turns.get()

    with pytest.raises(StateConflict, match="queued cannot become waiting_for_input"):
        turns.set_status(run, turn, TurnStatus.WAITING_FOR_INPUT)
    turn.refresh_from_db()
    assert turn.status == "queued"


@pytest.mark.parametrize("outcome", list(Outcome))
def test_an_end_is_written_to_the_turn_its_run_and_the_history(make_run: MakeRun, outcome: Outcome) -> None:
    run = make_run()
    turns.finish(run, run.turns.get(), outcome, output="o", error="e", error_code="c")

    run.refresh_from_db()
    turn = run.turns.get()
    for row in (run, turn):
        assert (row.status, row.outcome, row.output, row.error, row.error_code) == (
            "finished", outcome.value, "o", "e", "c",
        )  # fmt: skip
    assert turn.finished_at is not None
    event = Event.objects.get(run=run, type=f"run.{outcome.value}")
    assert event.payload == {"turn": 0, "output": "o", "error": "e", "error_code": "c"}


def test_the_status_of_a_run_is_that_of_its_oldest_unfinished_turn(make_run: MakeRun) -> None:
    run = make_run()
    first = run.turns.get()
    second = control.reply(run.pk, "two")
    run.refresh_from_db()
    turns.set_status(run, first, TurnStatus.RUNNING_TURN)
    assert run.status == "running_turn"

    turns.finish(run, first, Outcome.FAILED, error="first failed")
    assert (run.status, run.outcome) == ("queued", None)

    turns.finish(run, second, Outcome.COMPLETED, output="second done")
    run.refresh_from_db()
    assert (run.status, run.outcome, run.output, run.error) == ("finished", "completed", "second done", None)


@pytest.mark.parametrize(
    ("outcome", "of_round", "code"),
    [(Outcome.CANCELLED, "cancelled", "cancelled"), (Outcome.FAILED, "superseded", "superseded")],
)
def test_pauses_of_an_ending_turn_fail_with_the_code_of_the_cause(
    make_round: MakeRound, outcome: Outcome, of_round: str, code: str
) -> None:
    pending = make_round()
    turns.finish(pending.run, pending.turn, outcome)

    pending.refresh_from_db()
    assert (pending.status, pending.outcome, pending.failure_code) == ("failed", of_round, code)
    assert pending.decided_via == "worker"


def test_an_answer_that_was_delivered_keeps_its_outcome_when_the_turn_ends(make_round: MakeRound) -> None:
    round_ = make_round()
    answered = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
    Round.objects.filter(pk=round_.pk).update(
        status="delivered", outcome="allowed", responses=answered, delivered_at=timezone.now()
    )

    turns.finish(round_.run, round_.turn, Outcome.CANCELLED)

    round_.refresh_from_db()
    assert (round_.status, round_.outcome, round_.failure_code) == ("resolved", "allowed", None)
    assert round_.resolved_at is not None


def test_a_call_in_flight_stays_unknown_and_an_unsent_one_failed(make_run: MakeRun) -> None:
    run = make_run()
    calls = {
        "prepared": call_of(run, "prepared", allowed=True),
        "input_required": call_of(run, "input_required"),
        "sent": call_of(run, "sent"),
        "done": call_of(run, "done"),
    }
    Step.objects.filter(pk=calls["done"].pk).update(result={"status": "done"})

    turns.finish(run, run.turns.get(), Outcome.FAILED, error="It broke.")

    phases = {name: ToolCall.objects.get(pk=call.pk).phase for name, call in calls.items()}
    assert phases == {
        "prepared": "failed", "input_required": "failed", "sent": "unknown", "done": "done",
    }  # fmt: skip
    assert not ToolCall.objects.get(pk=calls["prepared"].pk).allowed
    results = dict(Step.objects.values_list("pk", "result"))
    assert results[calls["done"].pk] == {"status": "done"}
    assert results[calls["sent"].pk] == {"status": "failed", "result": None, "error": "It broke."}


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.COMPLETED, "done"),
        (Outcome.CANCELLED, "cancelled"),
        (Outcome.FAILED, "failed"),
        (Outcome.TIMED_OUT, "failed"),
    ],
)
def test_the_end_of_a_child_closes_the_step_that_waits_and_wakes_the_parent(
    make_run: MakeRun, outcome: Outcome, status: str
) -> None:
    parent = make_run()
    step = Step.objects.create(run=parent, turn=parent.turns.get(), seq=1, kind="run", path="child")
    child = control.create_run(parent.agent, control.Submission(message="help"), parent_step=step)
    woken = Run.objects.get(pk=parent.pk).wake_seq

    turns.finish(child, child.turns.get(), outcome, output="out", error="err")

    step.refresh_from_db()
    assert step.result == {"status": status, "result": "out", "error": "err", "run_id": child.pk}
    assert step.finished_at is not None
    assert Run.objects.get(pk=parent.pk).wake_seq == woken + 1


def test_a_child_that_ends_late_changes_no_closed_step(make_run: MakeRun) -> None:
    parent = make_run()
    step = Step.objects.create(run=parent, turn=parent.turns.get(), seq=1, kind="run", path="child")
    child = control.create_run(parent.agent, control.Submission(message="help"), parent_step=step)
    Step.objects.filter(pk=step.pk).update(result={"status": "failed"})

    turns.finish(child, child.turns.get(), Outcome.COMPLETED)

    step.refresh_from_db()
    assert step.result == {"status": "failed"}
