"""Switching the mode of a live run: pending calls are decided anew, everything else waits (m8tes-http 4.4)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from approvals.decisions import switch_mode
from approvals.facts import Effect, Scope
from approvals.models import Source
from approvals.policies import Rule, grant
from runs import control
from runs.access import Actor
from runs.errors import ModelValidationError, NotAllowed, NotFound, StateConflict
from runs.gate import Verdict
from runs.models import Account, Event, Round, Run, Server, User
from runs.round_rows import Decider

Acting = Callable[[User], Actor]
MakeRound = Callable[..., Round]
MakeRun = Callable[..., Run]
VerdictOn = Callable[..., Verdict]


def test_to_autonomous_allows_pending_calls_and_the_run_goes_on(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    one = make_round()
    two = make_round(run=one.run, tool="desk:refund")
    elsewhere = make_round()

    run = switch_mode(acting(alice), one.run_id, "autonomous")

    assert (run.mode, run.status) == ("autonomous", "running_turn")
    for card in (one, two):
        card.refresh_from_db()
        assert (card.outcome, card.decided_via, card.decided_by) == ("allowed", "mode", None)
        assert card.context["allowed_by"]["text"] == "alice switched the run to autonomous."
    assert Round.objects.get(pk=elsewhere.pk).status == "pending"
    assert Event.objects.filter(type="permission_resolved", run=run).count() == 2
    assert Event.objects.get(type="run.mode").actor == alice


def test_questions_plans_strict_tools_and_ask_rules_stay(
    acting: Acting, alice: User, make_round: MakeRound, account: Account, desk: Server
) -> None:
    strict = make_round(tool="desk:refund")
    desk.tools.filter(name="refund").update(risk="strict")
    ask = Rule(account=account, effect=Effect.ASK, scope=Scope.ACCOUNT, target="desk:send_email")
    grant(None, ask, source=Source.API)
    run = strict.run
    waiting = [
        strict,
        *(make_round(kind, run=run) for kind in ("approval", "question", "plan", "elicitation")),
    ]

    assert switch_mode(acting(alice), run.pk, "autonomous").status == "waiting_for_input"

    assert {Round.objects.get(pk=one.pk).status for one in waiting} == {"pending"}


def test_to_approval_counts_from_the_next_call_on_and_switches_human_input_on(
    acting: Acting, alice: User, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    run = make_run(mode="autonomous")
    Run.objects.filter(pk=run.pk).update(human_input="fail")
    assert verdict_on(run).effect == "allow"

    switched = switch_mode(acting(alice), run.pk, "approval")

    assert switched.human_input == "managed"
    assert verdict_on(run).effect == "ask"


def test_a_finished_run_has_no_mode_to_switch(acting: Acting, alice: User, make_run: MakeRun) -> None:
    run = make_run()
    control.cancel(run.pk, decider=Decider(user=alice, via="page"))

    with pytest.raises(StateConflict, match="ended"):
        switch_mode(acting(alice), run.pk, "autonomous")


def test_only_operators_of_the_account_switch_and_only_to_known_modes(
    acting: Acting, alice: User, vera: User, otto: User, make_run: MakeRun
) -> None:
    run = make_run()
    refusals = ((vera, NotAllowed, "plan"), (otto, NotFound, "plan"), (alice, ModelValidationError, "yolo"))
    for user, refusal, mode in refusals:
        with pytest.raises(refusal):
            switch_mode(acting(user), run.pk, mode)
    assert Run.objects.get(pk=run.pk).mode == "approval"
