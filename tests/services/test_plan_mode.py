"""Approving a plan may name the mode in which the run goes on; both happen or neither (m8tes-http 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals.decisions import decide, save_draft
from runs import control, lease
from runs.access import Actor
from runs.canonical import digest
from runs.control import Submission
from runs.errors import ManagedInputValidationError, StateConflict
from runs.gate import Verdict
from runs.models import Agent, Event, Round, Run, Step, User
from runs.requests import PLAN_KEY, plan
from runs.round_rows import Decider
from runs.run_states import HumanInput
from runs.steps import ProposePlan
from runs.worker import asking

Acting = Callable[[User], Actor]
MakeRound = Callable[..., Round]
VerdictOn = Callable[..., Verdict]
BOTH = ["approval", "autonomous"]


@pytest.fixture
def proposed(make_run: Callable[..., Run], make_round: MakeRound) -> Round:
    """A plan that waits in a run in plan mode."""
    return make_round("plan", run=make_run(mode="plan"), requests=plan("1. Draft", BOTH))


def answer(**content: Any) -> dict[str, Any]:
    return {PLAN_KEY: {"action": "accept", "content": content}}


def test_an_approval_that_names_autonomous_switches_and_lets_waiting_calls_go(
    acting: Acting, alice: User, proposed: Round, make_round: MakeRound, verdict_on: VerdictOn
) -> None:
    call, question = (make_round(kind, run=proposed.run) for kind in ("approval", "question"))

    settled = decide(
        acting(alice), proposed.pk, answer(decision="approve", then="autonomous"), idempotency_key="k"
    )

    assert (settled.status, settled.run.mode) == ("response_validated", "autonomous")
    assert verdict_on(proposed.run).code == "autonomous"
    call.refresh_from_db()
    question.refresh_from_db()
    assert (call.outcome, call.decided_via, question.status) == ("allowed", "mode", "pending")
    assert "alice approved the plan" in call.context["allowed_by"]["text"]
    event = Event.objects.get(type="run.mode")
    assert (event.actor, event.payload) == (alice, {"from": "plan", "to": "autonomous"})


def test_an_approval_that_names_approval_decides_the_next_call_in_that_mode(
    acting: Acting, alice: User, proposed: Round, verdict_on: VerdictOn
) -> None:
    assert verdict_on(proposed.run).code == "plan_first"
    decide(acting(alice), proposed.pk, answer(decision="approve", then="approval"), idempotency_key="k")
    assert (verdict_on(proposed.run).code, Run.objects.get().mode) == ("no_rule", "approval")


def test_an_approval_that_names_no_mode_leaves_it(acting: Acting, alice: User, proposed: Round) -> None:
    decide(acting(alice), proposed.pk, answer(decision="approve"), idempotency_key="k")
    assert Run.objects.get().mode == "plan"
    assert not Event.objects.filter(type="run.mode").exists()


@pytest.mark.parametrize(
    "content",
    [
        {"decision": "revise", "text": "Shorter", "then": "autonomous"},
        {"decision": "approve", "then": "plan"},
        {"decision": "approve", "then": "lenient"},
        {"decision": "approve", "then": ""},
        {"decision": "approve", "then": None},
    ],
)
def test_a_mode_goes_with_an_approval_only_and_is_one_of_those_offered(
    acting: Acting, alice: User, proposed: Round, content: dict[str, Any]
) -> None:
    with pytest.raises(ManagedInputValidationError):
        decide(acting(alice), proposed.pk, answer(**content), idempotency_key="k")
    proposed.refresh_from_db()
    assert (proposed.status, proposed.run.mode) == ("pending", "plan")


def test_a_plan_that_was_proposed_without_a_choice_takes_none(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    older = make_round("plan")
    with pytest.raises(ManagedInputValidationError):
        decide(acting(alice), older.pk, answer(decision="approve", then="autonomous"), idempotency_key="k")
    decide(acting(alice), older.pk, answer(decision="approve"), idempotency_key="k")


def test_the_same_approval_again_does_not_switch_back(acting: Acting, alice: User, proposed: Round) -> None:
    for _ in range(2):
        decide(acting(alice), proposed.pk, answer(decision="approve", then="autonomous"), idempotency_key="k")
        control.set_mode(proposed.run_id, "plan", decider=Decider(user=alice, via="page"))
    assert Run.objects.get().mode == "plan"
    assert Event.objects.filter(type="run.mode", payload__to="autonomous").count() == 1


def test_the_answer_through_a_draft_names_the_mode_as_well(
    acting: Acting, alice: User, proposed: Round
) -> None:
    response = answer(decision="approve", then="approval")[PLAN_KEY]
    save_draft(acting(alice), proposed.pk, PLAN_KEY, response)
    assert Run.objects.get().mode == "approval"


def child_of(parent: Run, agent: Agent) -> Run:
    step = Step.objects.create(run=parent, turn=parent.turns.get(), seq=90, kind="run", path="steps.90")
    return control.create_run(agent, Submission(message="child"), parent_step=step)


def offered(run: Run) -> list[str]:
    """The modes that the plan of a run offers, as the worker opens it."""
    held = lease.claim(run.pk, "worker")
    assert held is not None
    turn = run.turns.get()
    step = Step.objects.create(run=run, turn=turn, seq=1, kind="plan", path="steps.1")
    control.turns.set_status(run, turn, control.turns.TurnStatus.RUNNING_TURN)
    asking.plan(run, turn, step, ProposePlan(path="steps.1", text="1. Draft"))
    round_ = Round.objects.get(run=run, kind="plan")
    assert round_.shown_digest == digest("1. Draft")
    properties = round_.requests[PLAN_KEY]["requested_schema"]["properties"]
    return list(properties.get("then", {}).get("enum", []))


@pytest.mark.parametrize(
    ("mode", "modes"), [("plan", BOTH), ("approval", ["autonomous"]), ("autonomous", ["approval"])]
)
def test_the_modes_that_are_offered_are_others_than_the_present_one(
    make_run: Callable[..., Run], mode: str, modes: list[str]
) -> None:
    assert offered(make_run(mode=mode)) == modes


@pytest.mark.parametrize(
    ("parent_mode", "modes"), [("plan", []), ("approval", ["approval"]), ("autonomous", BOTH)]
)
def test_a_child_is_offered_no_mode_that_is_laxer_than_its_parent(
    make_run: Callable[..., Run], agent: Agent, parent_mode: str, modes: list[str]
) -> None:
    child = child_of(make_run(mode=parent_mode), agent)
    Run.objects.filter(pk=child.pk).update(mode="plan")
    assert offered(Run.objects.get(pk=child.pk)) == modes


def test_a_parent_that_became_stricter_meanwhile_refuses_both_the_mode_and_the_approval(
    acting: Acting, alice: User, make_run: Callable[..., Run], make_round: MakeRound, agent: Agent
) -> None:
    parent = make_run(mode="autonomous")
    child = child_of(parent, agent)
    control.set_mode(child.pk, "plan", decider=Decider(user=alice, via="page"))
    waiting = make_round("plan", run=Run.objects.get(pk=child.pk), requests=plan("1. Draft", BOTH))
    control.set_mode(parent.pk, "approval", decider=Decider(user=alice, via="page"))

    with pytest.raises(StateConflict, match="never laxer"):
        decide(acting(alice), waiting.pk, answer(decision="approve", then="autonomous"), idempotency_key="k")
    waiting.refresh_from_db()
    assert (waiting.status, waiting.run.mode) == ("pending", "plan")
    decide(acting(alice), waiting.pk, answer(decision="approve", then="approval"), idempotency_key="k2")
    assert Run.objects.get(pk=child.pk).mode == "approval"


def test_people_may_be_asked_in_the_mode_that_follows(acting: Acting, alice: User, proposed: Round) -> None:
    decide(acting(alice), proposed.pk, answer(decision="approve", then="approval"), idempotency_key="k")
    assert Run.objects.get().human_input == HumanInput.MANAGED
