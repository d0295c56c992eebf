"""Cancelling and switching live runs: the rules below every transport (m8tes-http 4.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs import control, lease
from runs.control import Submission
from runs.errors import LeaseLost, ModelValidationError, StateConflict
from runs.models import Agent, Event, Round, Run, Step
from runs.round_rows import Decider
from runs.run_states import TurnStatus

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
BY_MODE = Decider(user=None, via="test")


# --- cancel ---------------------------------------------------------------------------------------------------


def test_cancelling_ends_children_first_then_every_turn_and_pause(
    make_round: MakeRound, make_child: Callable[..., Run], decider: Decider
) -> None:
    round_ = make_round()
    parent = round_.run
    child = make_child(parent)
    grandchild = make_child(child)
    control.reply(parent.pk, "and then")

    control.cancel(parent.pk, decider=decider)

    ended = Event.objects.filter(type="run.cancelled").order_by("pk").values_list("run", "actor_name")
    assert list(ended) == [(run.pk, "alice") for run in (grandchild, child, parent, parent)]
    for run in (parent, child, grandchild):
        run.refresh_from_db()
        assert (run.status, run.outcome, run.error_code) == ("finished", "cancelled", "cancelled")
    round_.refresh_from_db()
    assert (round_.status, round_.outcome, round_.failure_code) == ("failed", "cancelled", "cancelled")
    assert not Step.objects.filter(result__isnull=True).exists()


def test_cancelling_one_child_leaves_its_siblings_and_parent_running(
    make_run: MakeRun, make_child: Callable[..., Run], decider: Decider
) -> None:
    parent = make_run()
    first, second = make_child(parent), make_child(parent)
    woken = Run.objects.get(pk=parent.pk).wake_seq

    control.cancel(first.pk, decider=decider)

    assert Run.objects.get(pk=second.pk).status == "queued"
    after = Run.objects.get(pk=parent.pk)
    assert (after.status, after.wake_seq) == ("queued", woken + 1)
    assert first.parent_step is not None
    step = Step.objects.get(pk=first.parent_step.pk)
    assert step.result == {
        "status": "cancelled", "result": None, "error": "The run was cancelled.", "run_id": first.pk,
    }  # fmt: skip


def test_cancelling_takes_the_run_from_its_worker_and_wakes_it(make_run: MakeRun, decider: Decider) -> None:
    run = make_run()
    held = lease.claim(run.pk, "worker")
    assert held is not None

    control.cancel(run.pk, decider=decider)

    with pytest.raises(LeaseLost):
        lease.fence(held)
    run.refresh_from_db()
    assert run.wake_seq > held.seen


def test_a_finished_run_refuses_to_be_cancelled_or_switched(make_run: MakeRun, decider: Decider) -> None:
    run = make_run()
    control.cancel(run.pk, decider=decider)
    before = Event.objects.count()

    with pytest.raises(StateConflict, match="nothing to cancel"):
        control.cancel(run.pk, decider=decider)
    with pytest.raises(StateConflict, match="no longer matters"):
        control.set_mode(run.pk, "plan", decider=decider)
    assert Event.objects.count() == before


# --- mode -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "human"), [("approval", "managed"), ("plan", "managed"), ("autonomous", "fail")]
)
def test_switching_to_a_mode_that_asks_turns_human_input_on(
    agent: Agent, decider: Decider, mode: str, human: str
) -> None:
    run = control.create_run(agent, Submission(message="Go", mode="autonomous"))

    switched = control.set_mode(run.pk, mode, decider=decider)

    assert (switched.mode, switched.human_input) == (mode, human)
    event = Event.objects.get(run=run, type="run.mode")
    assert (event.payload, event.actor_name) == ({"from": "autonomous", "to": mode}, "alice")


def test_a_stricter_mode_reaches_live_children_and_no_finished_ones(
    make_run: MakeRun, make_child: Callable[..., Run], decider: Decider
) -> None:
    parent = make_run(mode="autonomous")
    live, strict, over = (make_child(parent, mode=mode) for mode in ("autonomous", "plan", "autonomous"))
    grandchild = make_child(live, mode="autonomous")
    control.cancel(over.pk, decider=decider)

    control.set_mode(parent.pk, "approval", decider=decider)

    modes = {run.pk: run.mode for run in Run.objects.all()}
    assert [modes[run.pk] for run in (live, grandchild, strict, over)] == [
        "approval", "approval", "plan", "autonomous",
    ]  # fmt: skip


def test_a_laxer_mode_stays_with_the_parent(
    make_run: MakeRun, make_child: Callable[..., Run], decider: Decider
) -> None:
    parent = make_run(mode="approval")
    child = make_child(parent)
    history = Event.objects.filter(run=child).count()

    control.set_mode(parent.pk, "autonomous", decider=decider)

    assert Run.objects.get(pk=child.pk).mode == "approval"
    assert Event.objects.filter(run=child).count() == history


def test_a_child_cannot_be_switched_to_be_laxer_than_its_parent(
    make_run: MakeRun, make_child: Callable[..., Run], decider: Decider
) -> None:
    parent = make_run(mode="approval")
    child = make_child(parent)

    with pytest.raises(StateConflict, match=f"Switch run {parent.pk} first"):
        control.set_mode(child.pk, "autonomous", decider=decider)
    assert control.set_mode(child.pk, "plan", decider=decider).mode == "plan"


def test_a_word_that_is_no_mode_switches_nothing(make_run: MakeRun) -> None:
    run = make_run()

    with pytest.raises(ModelValidationError):
        control.set_mode(run.pk, "lenient", decider=BY_MODE)
    run.refresh_from_db()
    assert run.mode == "approval"
    assert TurnStatus(run.status) is TurnStatus.QUEUED
