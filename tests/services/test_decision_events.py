"""Every decision on a call is in the history: who, what, why, on which arguments, and what was executed then.

The worker's boundaries are called one by one on real rows; no server stands behind them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from approvals import policies
from approvals.batch import Choice
from approvals.decisions import Remember, decide, decide_several, switch_mode
from approvals.facts import Effect
from approvals.gate import PolicyGate
from approvals.models import Policy, Source
from runs import audit_check, lease, rounds, tool_words, turns
from runs.access import Actor
from runs.canonical import digest
from runs.errors import StateConflict
from runs.models import Event, Round, Run, Server, Step, ToolCall, User
from runs.requests import APPROVAL_KEY, OUTCOME_KEY
from runs.risk import Risk
from runs.run_states import CallPhase, TurnStatus
from runs.tool_standing import Words
from runs.worker import call_journal, gating
from tests.services.policy_helpers import rule

Acting = Callable[[User], Actor]
MakeRun = Callable[..., Run]
ASKED = {"to": "ann@example.com", "amount": 20}
SHOWN = digest(ASKED)


class Desk:
    """One run whose worker stands still, so that a test takes its steps."""

    def __init__(self, run: Run) -> None:
        held = lease.claim(run.pk, "worker")
        assert held is not None
        self.run, self.held = run, held
        turns.set_status(run, run.turns.get(), TurnStatus.RUNNING_TURN)

    def call(self, name: str = "send_email") -> int:
        """A call that the agent asks for, up to the word of the gate."""
        seq = self.run.steps.count() + 1
        step = Step.objects.create(
            run=self.run, turn=self.run.turns.get(), seq=seq, kind="call", path=f"steps.{seq}"
        )
        server = Server.objects.get(name="desk")
        fields = {"server": server, "server_name": "desk", "operation": "tool", "name": name}
        ToolCall.objects.create(step=step, asked=ASKED, asked_digest=SHOWN, **fields)
        gating.gate(self.held, step.pk, PolicyGate())
        return step.pk

    def card(self, step: int) -> Round:
        return Round.objects.filter(step=step).latest("created_at")

    def told(self, type_: str) -> Event:
        return Event.objects.filter(run=self.run, type=type_).latest("seq")

    def types(self) -> list[str]:
        return list(Event.objects.filter(run=self.run).order_by("seq").values_list("type", flat=True))


@pytest.fixture
def desk_of(make_run: MakeRun, desk: Server) -> Callable[..., Desk]:
    return lambda mode="approval": Desk(make_run(mode=mode))


@pytest.fixture(autouse=True)
def chains_hold(db: None, account: Any) -> Any:
    """Whatever a test does, the histories check out afterwards."""
    yield
    assert [str(problem) for problem in audit_check.check(account)] == []


def response(**content: Any) -> dict[str, Any]:
    return {APPROVAL_KEY: {"action": "accept", "content": content}}


def why(event: Event) -> tuple[Any, ...]:
    payload = event.payload
    return payload["code"], payload["rule_id"], payload["decided_digest"], event.actor_name


def test_the_gate_allows(desk_of: Callable[..., Desk]) -> None:
    desk_ = desk_of("autonomous")
    step = desk_.call()
    event = desk_.told("tool_call.allowed")
    assert why(event) == ("autonomous", None, SHOWN, "worker")
    assert (event.payload["mode"], event.payload["risk"]) == ("autonomous", "write")
    assert event.payload["reason"]
    assert event.payload["definition_digest"] == Server.objects.get().tools.get(name="send_email").digest

    call_journal.sent(desk_.held, step, "1")
    sent = desk_.told("tool_call.sent").payload
    assert (sent["asked_digest"], sent["executed_digest"]) == (SHOWN, SHOWN)


def test_a_rule_allows(desk_of: Callable[..., Desk], account: Any) -> None:
    policy = policies.grant(None, rule(account), source=Source.API)
    desk_ = desk_of()
    desk_.call()
    assert why(desk_.told("tool_call.allowed")) == ("allow_rule", policy.pk, SHOWN, "worker")


def test_a_rule_denies(desk_of: Callable[..., Desk], account: Any) -> None:
    policy = policies.grant(None, rule(account, effect=Effect.DENY), source=Source.API)
    desk_ = desk_of("autonomous")
    desk_.call()
    event = desk_.told("tool_call.denied")
    assert why(event) == ("deny_rule", policy.pk, SHOWN, "worker")
    assert event.payload["reason"] == f"Rule {policy.pk} denies desk:send_email."
    assert "tool_call.sent" not in desk_.types()


def test_nobody_may_be_asked(desk_of: Callable[..., Desk]) -> None:
    desk_ = desk_of("approval")
    Run.objects.update(human_input="fail")
    desk_.call()
    assert why(desk_.told("tool_call.denied"))[0] == "human_input_required"
    assert desk_.types()[-1] == "run.failed"


def test_the_gate_asks(desk_of: Callable[..., Desk]) -> None:
    desk_ = desk_of()
    step = desk_.call()
    assert why(desk_.told("tool_call.asked")) == ("no_rule", None, SHOWN, "worker")
    assert desk_.told("approval.request").payload["round_id"] == desk_.card(step).pk
    assert desk_.told("approval.request").payload["shown_digest"] == SHOWN


def test_a_person_allows_with_edits(desk_of: Callable[..., Desk], acting: Acting, alice: User) -> None:
    desk_ = desk_of()
    step = desk_.call()
    card = desk_.card(step)
    edited = {"to": "bo@example.com", "amount": 20}
    decide(
        acting(alice), card.pk, response(decision="allow", arguments=edited), idempotency_key="k", note="Bo"
    )
    resolved = desk_.told("permission_resolved")
    told = resolved.payload
    assert (resolved.actor, told["automatic"], told["resolved_status"]) == (alice, False, "allowed")
    assert (told["shown_digest"], told["decided_digest"], told["edited"]) == (SHOWN, digest(edited), True)
    assert desk_.told("approval.response").payload["via"] == "page"

    gating.apply_approval(desk_.held, step, card.pk)
    assert gating.confirm(desk_.held, step, PolicyGate())
    call_journal.sent(desk_.held, step, "1")
    sent = desk_.told("tool_call.sent").payload
    assert (sent["asked_digest"], sent["executed_digest"]) == (SHOWN, digest(edited))


def test_a_person_denies(desk_of: Callable[..., Desk], acting: Acting, alice: User) -> None:
    desk_ = desk_of()
    step = desk_.call()
    card = desk_.card(step)
    decide(acting(alice), card.pk, response(decision="deny", feedback="Not Ann."), idempotency_key="k")
    gating.apply_approval(desk_.held, step, card.pk)

    assert desk_.told("permission_resolved").payload["resolved_status"] == "denied"
    event = desk_.told("tool_call.denied")
    assert why(event) == ("person", None, SHOWN, "worker")
    assert (event.payload["reason"], event.payload["request_id"]) == ("Not Ann.", card.pk)


def test_several_are_allowed_together(desk_of: Callable[..., Desk], acting: Acting, alice: User) -> None:
    desk_ = desk_of()
    cards = [desk_.card(desk_.call()) for _ in range(2)]
    decide_several(
        acting(alice),
        [Choice(round_id=c.pk, shown_digest=c.shown_digest) for c in cards],
        idempotency_key="k",
    )
    resolved = Event.objects.filter(run=desk_.run, type="permission_resolved")
    assert {event.payload["request_id"] for event in resolved} == {card.pk for card in cards}
    assert {(event.actor, event.payload["decided_digest"]) for event in resolved} == {(alice, SHOWN)}


def test_a_rule_that_was_remembered_closes_another_call(
    desk_of: Callable[..., Desk], acting: Acting, alice: User
) -> None:
    desk_ = desk_of()
    first, second = desk_.card(desk_.call()), desk_.card(desk_.call())
    decide(
        acting(alice),
        first.pk,
        response(decision="allow"),
        idempotency_key="k",
        remember=Remember(scope="run"),
    )
    policy = Policy.objects.get()
    closed = Event.objects.get(type="permission_resolved", payload__request_id=second.pk)
    told = closed.payload
    assert (closed.actor, closed.actor_name, told["automatic"]) == (None, "rule", True)
    assert (told["rule_id"], told["shown_digest"], told["decided_digest"]) == (policy.pk, SHOWN, SHOWN)
    assert told["reason"].startswith("Allow desk:send_email")


def test_a_switch_of_the_mode_closes_a_call(
    desk_of: Callable[..., Desk], acting: Acting, alice: User
) -> None:
    desk_ = desk_of()
    desk_.call()
    switch_mode(acting(alice), desk_.run.pk, "autonomous")
    closed = desk_.told("permission_resolved")
    assert (closed.actor_name, closed.payload["automatic"]) == ("mode", True)
    assert closed.payload["reason"] == "alice switched the run to autonomous."
    assert desk_.told("run.mode").actor == alice


def test_a_permission_that_no_longer_holds_is_taken_back(
    desk_of: Callable[..., Desk], acting: Acting, alice: User, account: Any
) -> None:
    desk_ = desk_of()
    step = desk_.call()
    card = desk_.card(step)
    decide(acting(alice), card.pk, response(decision="allow"), idempotency_key="k")
    gating.apply_approval(desk_.held, step, card.pk)
    Server.objects.get().tools.filter(name="send_email").update(risk="money")

    assert not gating.confirm(desk_.held, step, PolicyGate())
    event = desk_.told("tool_call.changed")
    assert (event.payload["code"], event.payload["risk"]) == ("high_stakes", "money")
    assert event.payload["decided_digest"] == SHOWN

    gating.gate(desk_.held, step, PolicyGate())
    assert why(desk_.told("tool_call.asked"))[0] == "high_stakes"
    assert desk_.card(step).pk != card.pk


def test_a_permission_that_turns_into_a_denial_is_told_with_the_rule(
    desk_of: Callable[..., Desk], account: Any
) -> None:
    desk_ = desk_of("autonomous")
    step = desk_.call()
    policy = policies.grant(None, rule(account, effect=Effect.DENY), source=Source.API)
    assert not gating.confirm(desk_.held, step, PolicyGate())
    assert why(desk_.told("tool_call.denied")) == ("deny_rule", policy.pk, SHOWN, "worker")


def test_a_risk_that_an_admin_changes_takes_a_card_back(
    desk_of: Callable[..., Desk], acting: Acting, ada: User
) -> None:
    desk_ = desk_of()
    card = desk_.card(desk_.call())
    tool = Server.objects.get().tools.get(name="send_email")
    tool_words.say(acting(ada), tool.server_id, tool.pk, Words(risk=Risk.MONEY))
    event = desk_.told("round.failed")
    assert (event.actor, event.payload["code"], event.payload["round_id"]) == (ada, "risk_changed", card.pk)
    assert event.payload["shown_digest"] == SHOWN


def test_nobody_answers_in_time(desk_of: Callable[..., Desk]) -> None:
    desk_ = desk_of()
    card = desk_.card(desk_.call())
    Round.objects.filter(pk=card.pk).update(deadline=card.created_at - dt.timedelta(seconds=1))
    rounds.expire(Round.objects.select_related("run", "turn", "step").get(pk=card.pk))
    event = desk_.told("round.failed")
    assert (event.actor_name, event.payload["outcome"], event.payload["code"]) == (
        "deadline",
        "timed_out",
        "timeout",
    )
    assert event.payload["shown_digest"] == SHOWN
    assert desk_.types()[-1] == "run.timed_out"


@pytest.mark.parametrize(
    ("decision", "type_"), [("happened", "tool_call.result"), ("run_again", "tool_call.run_again")]
)
def test_a_person_says_what_became_of_a_call(
    desk_of: Callable[..., Desk], acting: Acting, alice: User, decision: str, type_: str
) -> None:
    desk_ = desk_of("autonomous")
    step = desk_.call()
    call_journal.sent(desk_.held, step, "1")
    call_journal.failed(desk_.held, step, "The connection broke.", unknown=True)
    assert ToolCall.objects.get().phase == CallPhase.UNKNOWN
    card = desk_.card(step)
    given = {OUTCOME_KEY: {"action": "accept", "content": {"decision": decision}}}
    decide(acting(alice), card.pk, given, idempotency_key="k")
    call_journal.apply_outcome(desk_.held, step, card.pk)

    said = desk_.told("outcome.response")
    assert (said.actor, said.payload["shown_digest"]) == (alice, SHOWN)
    assert said.payload["responses"][OUTCOME_KEY]["content"]["decision"] == decision
    assert desk_.types()[-1] == type_


def test_a_plan_is_answered(acting: Acting, alice: User, make_round: Callable[..., Round]) -> None:
    card = make_round("plan")
    given = {"plan": {"action": "accept", "content": {"decision": "revise", "text": "Shorter"}}}
    decide(acting(alice), card.pk, given, idempotency_key="k")
    event = Event.objects.get(type="plan.response")
    assert (event.actor, event.payload["shown_digest"]) == (alice, digest(card.context["text"]))
    assert event.payload["responses"]["plan"]["content"] == {"decision": "revise", "text": "Shorter"}


def test_a_late_denial_is_told_and_changes_nothing(
    desk_of: Callable[..., Desk], acting: Acting, alice: User
) -> None:
    desk_ = desk_of()
    card = desk_.card(desk_.call())
    Round.objects.filter(pk=card.pk).update(deadline=card.created_at)
    with pytest.raises(StateConflict, match="deadline"):
        decide(acting(alice), card.pk, response(decision="deny"), idempotency_key="k")
    event = desk_.told("round.late_answer")
    assert (event.actor, event.payload["shown_digest"]) == (alice, SHOWN)
