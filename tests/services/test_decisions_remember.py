"""Remembering an allow: stored with the decision or not at all, and what else the new rule closes (R9, R16, R29)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError

from approvals import pins
from approvals.decisions import Remember, decide
from approvals.models import Policy
from approvals.policies import preview
from runs.access import Actor
from runs.errors import ManagedInputConflict, ManagedInputValidationError
from runs.gate import Verdict
from runs.models import Event, Round, Run, Server, User

Acting = Callable[[User], Actor]
MakeRound = Callable[..., Round]
MakeRun = Callable[..., Run]
VerdictOn = Callable[..., Verdict]

ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}
DENY = {"approval": {"action": "accept", "content": {"decision": "deny"}}}


def offering(*scopes: str) -> dict[str, Any]:
    return {"effect": "ask", "code": "no_rule", "reason": "No rule.", "remember": list(scopes)}


def test_remembering_for_the_run_lets_the_next_call_of_this_run_pass_and_no_other(
    acting: Acting, alice: User, make_round: MakeRound, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    pending = make_round()
    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope="run"))

    assert verdict_on(pending.run).code == "remembered"
    assert verdict_on(make_run()).effect == "ask"


def test_remembering_for_a_user_never_reaches_another_user_or_the_account(
    acting: Acting, alice: User, make_round: MakeRound, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    pending = make_round(run=make_run(user_id="cust_123"), verdict=offering("run", "user"))
    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope="user"))

    assert verdict_on(make_run(user_id="cust_123")).code == "allow_rule"
    assert verdict_on(make_run(user_id="cust_9")).effect == "ask"
    assert verdict_on(make_run()).effect == "ask"


def test_remembering_for_the_account_reaches_only_runs_without_a_user(
    acting: Acting, alice: User, make_round: MakeRound, make_run: MakeRun, verdict_on: VerdictOn
) -> None:
    decide(acting(alice), make_round().pk, ALLOW, idempotency_key="k", remember=Remember(scope="account"))

    assert verdict_on(make_run()).code == "allow_rule"
    assert verdict_on(make_run(user_id="cust_123")).effect == "ask"


def test_what_was_shown_is_what_the_pause_and_the_event_say_was_remembered(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    shown = preview(pending.run, "desk:send_email", "account", 7)

    decided = decide(
        acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope="account", days=7)
    )

    policy = Policy.objects.get()
    assert (policy.source, policy.created_by) == ("run_approval", alice)
    assert decided.context["remembered"] == {
        "scope": "account",
        "days": 7,
        "exactly": False,
        "rule_id": policy.pk,
        "text": shown,
    }
    payload = Event.objects.get(type="permission_resolved").payload
    assert (payload["remembered"], payload["rule_id"], payload["reason"]) == (True, policy.pk, shown)


def test_a_rule_that_cannot_be_stored_leaves_the_pause_pending(
    acting: Acting, alice: User, make_round: MakeRound, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = make_round()

    def fails(_policy: Policy) -> None:
        raise IntegrityError("the disk is full")

    monkeypatch.setattr(pins, "pin", fails)
    with pytest.raises(IntegrityError):
        decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope="run"))

    pending.refresh_from_db()
    assert (pending.status, pending.responses) == ("pending", None)
    assert not Policy.objects.exists()
    assert not Event.objects.filter(type="permission_resolved").exists()


def test_a_deny_is_never_remembered(acting: Acting, alice: User, make_round: MakeRound) -> None:
    decide(acting(alice), make_round().pk, DENY, idempotency_key="k", remember=Remember(scope="run"))

    assert not Policy.objects.exists()
    assert Event.objects.get(type="permission_resolved").payload["remembered"] is False


@pytest.mark.parametrize("scope", ["run", "account"])
def test_a_strict_tool_refuses_to_be_remembered(
    acting: Acting, alice: User, make_round: MakeRound, scope: str
) -> None:
    pending = make_round(verdict=offering())

    with pytest.raises(ManagedInputValidationError, match="cannot be remembered"):
        decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope=scope))

    assert Round.objects.get(pk=pending.pk).status == "pending"
    assert not Policy.objects.exists()


def test_a_scope_that_the_pause_does_not_offer_is_refused(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    for scope in ("user", "everything"):
        with pytest.raises(ManagedInputValidationError, match="cannot be remembered"):
            decide(acting(alice), make_round().pk, ALLOW, idempotency_key="k", remember=Remember(scope=scope))
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    "change", [{"risk": "strict"}, {"digest": "sha256:other"}], ids=["strict", "changed"]
)
def test_a_tool_that_became_another_one_meanwhile_can_be_allowed_once_but_not_remembered(
    acting: Acting, alice: User, make_round: MakeRound, desk: Server, change: dict[str, str]
) -> None:
    pending = make_round()
    desk.tools.filter(name="send_email").update(**change)

    with pytest.raises(ManagedInputValidationError, match="Decide this call alone"):
        decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope="run"))

    assert decide(acting(alice), pending.pk, ALLOW, idempotency_key="k").outcome == "allowed"


def test_only_tool_calls_can_be_remembered(acting: Acting, alice: User, make_round: MakeRound) -> None:
    responses = {"q0": {"action": "accept", "content": {"selected": [0]}}}

    with pytest.raises(ManagedInputValidationError, match="tool call"):
        decide(
            acting(alice),
            make_round("question").pk,
            responses,
            idempotency_key="k",
            remember=Remember(scope="run"),
        )


def test_repeating_a_remembered_decision_does_not_bring_back_a_revoked_rule(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    remember = Remember(scope="run")
    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=remember)
    Policy.objects.all().delete()

    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=remember)

    assert not Policy.objects.exists()


def test_a_repeat_that_asks_to_remember_more_is_refused(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    pending = make_round()
    decide(acting(alice), pending.pk, ALLOW, idempotency_key="k")

    with pytest.raises(ManagedInputConflict):
        decide(acting(alice), pending.pk, ALLOW, idempotency_key="k", remember=Remember(scope="run"))

    assert not Policy.objects.exists()


def test_the_new_rule_closes_other_cards_that_it_covers_and_no_others(
    acting: Acting, alice: User, make_round: MakeRound, make_run: MakeRun
) -> None:
    decided = make_round()
    covered = make_round()
    same_run = make_round(run=decided.run)
    others = [
        make_round(tool="desk:refund"),
        make_round(run=make_run(user_id="cust_123")),
        make_round("question"),
        make_round("plan"),
    ]

    decide(acting(alice), decided.pk, ALLOW, idempotency_key="k", remember=Remember(scope="account"))

    policy = Policy.objects.get()
    for card in (covered, same_run):
        card.refresh_from_db()
        assert (card.outcome, card.decided_by, card.decided_via) == ("allowed", None, "rule")
        assert card.context["allowed_by"]["rule_id"] == policy.pk
        assert card.context["allowed_by"]["text"].startswith("Allow desk:send_email in every run")
    assert {Round.objects.get(pk=other.pk).status for other in others} == {"pending"}
    assert policy.hits == 2


def test_a_rule_for_the_run_leaves_the_same_tool_in_other_runs_pending(
    acting: Acting, alice: User, make_round: MakeRound
) -> None:
    decided, elsewhere = make_round(), make_round()

    decide(acting(alice), decided.pk, ALLOW, idempotency_key="k", remember=Remember(scope="run"))

    assert Round.objects.get(pk=elsewhere.pk).status == "pending"


def test_a_card_whose_tool_changed_stays_although_a_new_rule_names_it(
    acting: Acting, alice: User, make_round: MakeRound, desk: Server
) -> None:
    before = make_round()
    desk.tools.filter(name="send_email").update(digest="sha256:other")
    after = make_round()

    decide(acting(alice), after.pk, ALLOW, idempotency_key="k", remember=Remember(scope="account"))

    assert Round.objects.get(pk=before.pk).status == "pending"
