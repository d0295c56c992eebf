"""Rules with conditions: one row per condition, found by an index, about such calls and no others (R24, R26)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from approvals import policies, rule_checks
from approvals.conditions import ArgumentTest, exactly
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant, rule_sentence
from runs.access import Actor
from runs.errors import ModelValidationError
from runs.models import Account, EndUser, Round, Run, User
from tests.services.policy_helpers import equals, grant_as_shown, matches, rule, verdict_with

Acting = Callable[[User], Actor]
MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]

TO_US = (matches("to", "*@example.com"),)


def test_a_pattern_of_an_admin_decides_about_calls_that_it_matches_and_no_others(
    acting: Acting, ada: User, account: Account, make_run: MakeRun
) -> None:
    policy = grant_as_shown(acting(ada), rule(account, condition=TO_US))
    run = make_run()

    assert verdict_with(run, {"to": "ann@example.com"}).rule_id == policy.pk
    for arguments in ({"to": "ann@elsewhere.com"}, {"to": 5}, {}):
        assert verdict_with(run, arguments).code == "no_rule"


def test_a_star_in_a_remembered_value_is_a_star(
    acting: Acting, alice: User, account: Account, make_run: MakeRun
) -> None:
    grant(acting(alice), rule(account, condition=exactly({"to": "*"})), source=Source.RUN_APPROVAL)

    assert verdict_with(make_run(), {"to": "*"}).effect == "allow"
    assert verdict_with(make_run(), {"to": "ann@example.com"}).effect == "ask"
    assert verdict_with(make_run(), {"to": "*", "cc": "eve@example.com"}).effect == "ask"


def test_what_is_remembered_may_hold_no_pattern_whoever_remembers_it(
    acting: Acting, ada: User, account: Account
) -> None:
    with pytest.raises(ModelValidationError, match="literally"):
        grant(acting(ada), rule(account, condition=TO_US), source=Source.RUN_APPROVAL)


def test_an_allow_on_a_part_of_an_argument_is_refused_and_a_deny_is_not(
    acting: Acting, ada: User, account: Account, make_run: MakeRun
) -> None:
    first_row = (ArgumentTest(path=("rows", 0, "to"), value="eve@example.com"),)
    with pytest.raises(ModelValidationError, match="only a part"):
        grant(acting(ada), rule(account, condition=first_row), source=Source.API)

    grant(acting(ada), rule(account, effect=Effect.DENY, condition=first_row), source=Source.API)
    run = make_run(mode="autonomous")
    assert verdict_with(run, {"rows": [{"to": "eve@example.com"}]}).code == "deny_rule"
    assert verdict_with(run, {"rows": [{"to": "ann@example.com"}]}).code == "autonomous"


def test_there_is_one_row_per_condition_whatever_the_order_of_its_tests(
    acting: Acting, ada: User, account: Account
) -> None:
    both = (equals("to", "ann@example.com"), equals("amount", 1))
    first = grant_as_shown(acting(ada), rule(account, condition=both))
    again = grant_as_shown(acting(ada), rule(account, condition=both[::-1]))
    other = grant_as_shown(acting(ada), rule(account, condition=both[:1]))
    plain = grant_as_shown(acting(ada), rule(account))

    assert first.pk == again.pk
    assert len({first.pk, other.pk, plain.pk}) == 3
    assert Policy.objects.count() == 3


def test_a_rule_of_one_user_with_a_condition_never_decides_for_another(
    account: Account, make_run: MakeRun, customer: EndUser
) -> None:
    grant(None, rule(account, end_user=customer, condition=exactly({"to": "ann"})), source=Source.API)

    assert verdict_with(make_run(user_id="cust_123"), {"to": "ann"}).code == "allow_rule"
    assert verdict_with(make_run(user_id="cust_9"), {"to": "ann"}).effect == "ask"
    assert verdict_with(make_run(), {"to": "ann"}).effect == "ask"


def test_an_edited_call_is_judged_by_what_will_be_sent(account: Account, make_round: MakeRound) -> None:
    grant(None, rule(account, effect=Effect.DENY, condition=(equals("to", "eve"),)), source=Source.API)
    pending = make_round(arguments={"to": "ann"})
    call = pending.step.call
    call.edited = {"to": "eve"}

    from approvals.gate import evaluate

    assert evaluate(pending.run, pending.turn, call).code == "deny_rule"


def test_a_suspended_rule_asks_only_about_the_calls_that_it_covers(
    acting: Acting, ada: User, account: Account, make_run: MakeRun
) -> None:
    policy = grant_as_shown(acting(ada), rule(account, condition=TO_US))
    grant_as_shown(acting(ada), rule(account, condition=(equals("to", "bob@elsewhere.com"),)))
    policies.suspend(acting(ada), policy.pk, "Under review.")
    run = make_run()

    assert verdict_with(run, {"to": "ann@example.com"}).code == "suspended"
    assert verdict_with(run, {"to": "bob@elsewhere.com"}).code == "allow_rule"


def test_a_new_rule_with_a_condition_closes_the_waiting_calls_that_fit_it(
    acting: Acting, ada: User, account: Account, make_round: MakeRound
) -> None:
    fits, other = make_round(arguments={"to": "ann@example.com"}), make_round(arguments={"to": "x@y.z"})
    policy = grant_as_shown(acting(ada), rule(account, condition=TO_US))

    fits.refresh_from_db()
    other.refresh_from_db()
    assert (fits.outcome, other.status) == ("allowed", "pending")
    assert fits.context["allowed_by"] == {"rule_id": policy.pk, "text": rule_sentence(policy)}


def test_a_new_rule_for_exactly_these_arguments_closes_the_waiting_calls_that_have_them(
    account: Account, make_round: MakeRound
) -> None:
    same, other = make_round(arguments={"a": 1, "b": 2}), make_round(arguments={"a": 1, "b": 2, "c": 3})
    grant(None, rule(account, condition=exactly({"b": 2, "a": 1})), source=Source.API)

    same.refresh_from_db()
    other.refresh_from_db()
    assert (same.outcome, other.status) == ("allowed", "pending")


def test_rules_whose_conditions_must_be_tried_are_bounded_per_owner_and_target(
    account: Account, customer: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_checks, "MAX_TESTED", 2)
    for value in (1, 2):
        grant(None, rule(account, condition=(equals("amount", value),)), source=Source.API)
    with pytest.raises(ModelValidationError, match="Revoke some"):
        grant(None, rule(account, condition=(equals("amount", 3),)), source=Source.API)

    grant(None, rule(account, condition=(equals("amount", 2),)), source=Source.API)
    grant(None, rule(account, condition=exactly({"amount": 3})), source=Source.API)
    grant(None, rule(account, "desk:refund", condition=(equals("amount", 3),)), source=Source.API)
    grant(None, rule(account, end_user=customer, condition=(equals("amount", 3),)), source=Source.API)
    assert Policy.objects.count() == 5


def test_a_decision_reads_no_rules_of_others_and_none_about_exactly_other_arguments(
    account: Account, make_run: MakeRun, customer: EndUser
) -> None:
    for value in range(20):
        grant(None, rule(account, condition=exactly({"amount": value})), source=Source.API)
        other = EndUser.objects.create(account=account, user_id=f"user_{value}")
        grant(None, rule(account, end_user=other), source=Source.API)
    run = make_run(user_id="cust_123")

    found = candidates(account, run, {"amount": 7})
    assert [policy.match_key for policy in found] == [Policy.objects.get(pk=found[0].pk).match_key]
    assert len(found) == 1


def test_the_match_goes_by_an_index_for_every_owner(
    account: Account, make_run: MakeRun, customer: EndUser
) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("a planner with statistics may scan a table this small")
    rows = candidates(account, make_run(user_id="cust_123"), {"amount": 7}, explain=True)
    for owner in ("account", "user", "run"):
        assert f"policy_match_{owner}" in rows


def candidates(account: Account, run: Run, arguments: dict[str, Any], *, explain: bool = False) -> Any:
    from django.utils import timezone

    found = Policy.objects.candidates(
        account=account.pk,
        end_user=run.end_user_id,
        run=run.pk,
        target=("desk", "send_email"),
        arguments=arguments,
        now=timezone.now(),
    )
    return found.explain() if explain else list(found)
