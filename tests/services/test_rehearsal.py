"""A rule is replayed over the last decisions before it is saved, and what it covers is confirmed or it is not saved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from approvals import past_calls
from approvals.conditions import exactly
from approvals.decisions import Remember, decide
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.past_calls import last_decisions
from approvals.policies import grant
from approvals.rehearsal import UnconfirmedRule, rehearse
from runs.access import Actor
from runs.errors import ManagedInputValidationError, StateConflict
from runs.models import Account, EndUser, Event, Round, Run, Server, Tool, User
from tests.services.policy_helpers import decided_at_once, equals, matches, rule, said_by_gate

Acting = Callable[[User], Actor]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


@pytest.fixture
def denied(acting: Acting, bob: User, make_round: MakeRound) -> Callable[..., Round]:
    """A call that bob denied, carried out by the gate as the worker does."""

    def deny(**context: object) -> Round:
        settled = decide(acting(bob), make_round(**context).pk, DENY, idempotency_key="d")
        said_by_gate(settled.own_step.call, allowed=False)
        return settled

    return deny


def test_a_rule_says_what_it_would_have_allowed_and_which_of_it_people_denied(
    acting: Acting, alice: User, account: Account, make_round: MakeRound, make_run: MakeRun, denied: MakeRound
) -> None:
    refused = denied()
    decide(acting(alice), make_round().pk, ALLOW, idempotency_key="a")
    decided_at_once(make_run(), "desk:send_email", allowed=True)
    decided_at_once(make_run(), "desk:refund", allowed=True)

    found = rehearse(rule(account))

    assert (found.looked_at, found.would_allow, found.would_deny, found.would_ask) == (4, 3, 0, 0)
    [denial] = found.covered_denials
    assert (denial.run_id, denial.round_id, denial.person) == (refused.run_id, refused.pk, "bob")
    assert found.needs_confirmation
    assert found.summary == (
        "Of the last 4 calls that were decided here, it would have allowed 3, of which people denied 1."
    )


def test_a_rehearsal_changes_nothing(account: Account, denied: MakeRound) -> None:
    denied()
    before = (Policy.objects.count(), Event.objects.count())
    rehearse(rule(account))
    assert (Policy.objects.count(), Event.objects.count()) == before


def test_a_denied_call_counts_once_and_as_the_persons(account: Account, denied: MakeRound) -> None:
    denied()
    history = last_decisions(account, "desk")
    assert history.looked_at == 1
    assert history.calls[0].denied_by_person


def test_what_the_gate_denied_without_a_person_is_no_denial_to_confirm(
    account: Account, make_run: MakeRun
) -> None:
    decided_at_once(make_run(), "desk:send_email", allowed=False)

    found = rehearse(rule(account))

    assert (found.would_allow, found.covered_denials, found.needs_confirmation) == (1, (), False)


def test_a_call_that_a_person_allowed_and_the_gate_then_denied_is_no_denial_of_a_person(
    acting: Acting, alice: User, account: Account, make_round: MakeRound
) -> None:
    settled = decide(acting(alice), make_round().pk, ALLOW, idempotency_key="a")
    said_by_gate(settled.own_step.call, allowed=False)

    [call] = last_decisions(account, "desk").calls
    assert (call.allowed, call.person) == (False, "")


def test_a_call_that_a_rule_closed_is_an_automatic_allow(account: Account, make_round: MakeRound) -> None:
    make_round()
    grant(None, rule(account), source=Source.API)

    [call] = last_decisions(account, "desk").calls
    assert (call.allowed, call.person) == (True, "")


def test_a_pause_that_nobody_answered_is_no_decision(account: Account, make_round: MakeRound) -> None:
    make_round()
    assert last_decisions(account, "desk").looked_at == 0


def test_a_rule_is_replayed_on_what_its_scope_and_condition_cover(
    account: Account, make_run: MakeRun, customer: EndUser
) -> None:
    mine, plain = make_run(user_id="cust_123"), make_run()
    for run, amount in ((mine, 1), (mine, 2), (plain, 1), (make_run(user_id="cust_9"), 1)):
        decided_at_once(run, "desk:send_email", allowed=True, amount=amount, to="ann@example.com")

    assert rehearse(rule(account)).would_allow == 1
    assert rehearse(rule(account, end_user=customer)).would_allow == 2
    assert rehearse(rule(account, end_user=customer, condition=(equals("amount", 2),))).would_allow == 1
    assert rehearse(rule(account, run=mine)).would_allow == 2
    assert rehearse(rule(account, condition=(matches("to", "*@elsewhere.com"),))).would_allow == 0
    whole = {"amount": 1, "to": "ann@example.com"}
    assert rehearse(rule(account, condition=exactly(whole))).would_allow == 1


def test_a_deny_or_ask_rule_of_the_account_is_replayed_on_every_user(
    account: Account, make_run: MakeRun, denied: MakeRound
) -> None:
    decided_at_once(make_run(user_id="cust_123"), "desk:send_email", allowed=True)
    denied()

    deny, ask = (rehearse(rule(account, effect=effect)) for effect in (Effect.DENY, Effect.ASK))

    assert (deny.would_deny, deny.would_allow, ask.would_ask) == (2, 0, 2)
    assert not deny.covered_denials
    assert not deny.needs_confirmation


def test_what_a_deny_or_ask_rule_or_a_strict_tool_holds_back_is_not_covered(
    account: Account, denied: MakeRound, desk: Server
) -> None:
    denied(arguments={"to": "eve"})
    assert rehearse(rule(account)).needs_confirmation

    held = grant(None, rule(account, effect=Effect.DENY, condition=(equals("to", "eve"),)), source=Source.API)
    assert not rehearse(rule(account)).covered_denials
    held.delete()
    desk.tools.filter(name="send_email").update(risk="strict")
    assert not rehearse(rule(account)).covered_denials


def test_prompts_and_resources_are_replayed_too(account: Account, make_run: MakeRun) -> None:
    decided_at_once(make_run(), "desk:customers://all", allowed=True, operation="resource")
    assert rehearse(rule(account, "desk", Effect.DENY)).would_deny == 1


def test_decisions_of_another_account_are_not_looked_at(
    account: Account, other_account: Account, make_run: MakeRun
) -> None:
    decided_at_once(make_run(), "desk:send_email", allowed=True)
    assert last_decisions(other_account, "desk").looked_at == 0


def test_only_the_last_decisions_are_looked_at(
    account: Account, make_run: MakeRun, denied: MakeRound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_calls, "DECISIONS", 2)
    denied()
    for _ in range(2):
        decided_at_once(make_run(), "desk:refund", allowed=True)

    found = rehearse(rule(account))
    assert (found.looked_at, found.would_allow) == (2, 0)


def test_an_allow_of_a_high_stakes_tool_names_its_risk(account: Account, desk: Server) -> None:
    desk.tools.filter(name="send_email").update(risk="money")

    one, whole = rehearse(rule(account)), rehearse(rule(account, "desk"))

    assert [tool.sentence for tool in one.high_stakes] == [
        "desk:send_email is high-stakes (money): Moves or commits money."
    ]
    assert {tool.target for tool in whole.high_stakes} == {"desk:send_email", "desk:refund"}
    assert not rehearse(rule(account, "desk", Effect.DENY)).high_stakes


def test_a_target_without_a_server_can_be_rehearsed(account: Account) -> None:
    found = rehearse(rule(account, "later:anything"))
    assert (found.looked_at, found.needs_confirmation) == (0, False)


def test_an_unconfirmed_rule_is_not_saved_and_the_refusal_says_why(
    acting: Acting, ada: User, account: Account, denied: MakeRound
) -> None:
    refused_call = denied()
    wanted = rule(account)
    for given in ({}, {"confirmed": True}, {"shown": rehearse(wanted).digest}):
        with pytest.raises(StateConflict, match="has to be confirmed") as refused:
            grant(acting(ada), wanted, source=Source.API, **given)  # type: ignore[arg-type]
    assert refused.value.code == "rule_unconfirmed"
    details = refused.value.details
    assert (details["would_allow"], details["confirmation"]) == (1, rehearse(wanted).digest)
    assert details["covered_denials"] == [
        {"run_id": refused_call.run_id, "step": 1, "round_id": refused_call.pk, "denied_by": "bob"}
    ]
    assert not Policy.objects.exists()

    grant(acting(ada), wanted, source=Source.API, shown=details["confirmation"], confirmed=True)
    assert Policy.objects.count() == 1


def test_a_confirmation_holds_for_what_was_shown_and_no_more(
    acting: Acting, ada: User, account: Account, denied: MakeRound, desk: Server
) -> None:
    denied()
    shown = rehearse(rule(account)).digest

    with pytest.raises(UnconfirmedRule, match="not the rule that you were shown"):
        grant(acting(ada), rule(account, "desk"), source=Source.API, shown=shown, confirmed=True)
    desk.tools.filter(name="send_email").update(risk="money")
    with pytest.raises(UnconfirmedRule):
        grant(acting(ada), rule(account), source=Source.API, shown=shown, confirmed=True)
    desk.tools.filter(name="send_email").update(risk=None)
    denied()
    with pytest.raises(UnconfirmedRule):
        grant(acting(ada), rule(account), source=Source.API, shown=shown, confirmed=True)
    assert not Policy.objects.exists()


def test_further_calls_that_nobody_denied_leave_a_confirmation_as_it_is(
    account: Account, make_run: MakeRun, denied: MakeRound
) -> None:
    denied()
    before = rehearse(rule(account))
    decided_at_once(make_run(), "desk:send_email", allowed=True)
    after = rehearse(rule(account))

    assert after.would_allow == before.would_allow + 1
    assert after.digest == before.digest


def test_a_rule_without_findings_needs_no_confirmation_but_must_be_the_one_shown(
    acting: Acting, ada: User, account: Account
) -> None:
    with pytest.raises(UnconfirmedRule):
        grant(acting(ada), rule(account), source=Source.API, shown="sha256:other", confirmed=True)
    assert grant(acting(ada), rule(account), source=Source.API).pk


def test_the_installation_itself_confirms_nothing(account: Account) -> None:
    assert grant(None, rule(account, "desk:refund"), source=Source.API).pk


def test_remembering_from_a_card_needs_the_same_confirmation(
    acting: Acting, alice: User, account: Account, make_round: MakeRound, denied: MakeRound
) -> None:
    denied()
    pending = make_round()
    plain = Remember(scope="account")
    with pytest.raises(ManagedInputValidationError, match="has to be confirmed") as refused:
        decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=plain)
    pending.refresh_from_db()
    assert (pending.status, Policy.objects.count()) == ("pending", 0)

    seen = Remember(scope="account", shown=refused.value.details["rehearsal"]["confirmation"], confirmed=True)
    assert decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=seen).context["remembered"]
    # The same decision again, however it was confirmed, is the same decision (R3).
    assert decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=plain).pk == pending.pk


def test_a_tool_that_was_added_since_the_rule_was_shown_asks_again(
    acting: Acting, ada: User, account: Account, desk: Server
) -> None:
    shown = rehearse(rule(account, "desk")).digest
    Tool.objects.create(server=desk, name="pay", digest="sha256:pay", risk="money")

    with pytest.raises(UnconfirmedRule):
        grant(acting(ada), rule(account, "desk"), source=Source.API, shown=shown, confirmed=True)
