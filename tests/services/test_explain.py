"""Explaining a decision without making it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from approvals import policies
from approvals.conditions import exactly
from approvals.explain import Question, explain
from approvals.facts import Effect
from approvals.models import Policy, Source
from approvals.policies import grant, rule_sentence
from runs.access import Actor
from runs.errors import ModelValidationError
from runs.models import Account, EndUser, Event, Server, User
from tests.services.policy_helpers import equals, grant_as_shown, rule

Acting = Callable[[User], Actor]


@pytest.fixture
def actor(acting: Acting, ada: User, desk: Server) -> Actor:
    return acting(ada)


def code(actor: Actor, target: str = "desk:send_email", **facts: Any) -> str:
    return explain(actor, Question(target=target, **facts)).decision.code.value


def test_a_call_that_nothing_covers_is_asked_about_and_says_what_could_be_remembered(actor: Actor) -> None:
    found = explain(actor, Question(target="desk:send_email", arguments={"to": "ann"}))

    assert (found.decision.effect, found.decision.code.value, found.rule) == (Effect.ASK, "no_rule", None)
    assert found.remember == (
        'Allow desk:send_email with exactly the arguments {"to":"ann"} for the rest of its run.',
        "Allow desk:send_email for the rest of its run.",
        'Allow desk:send_email with exactly the arguments {"to":"ann"} in every run of this account that carries '
        "no user, until it is revoked.",
        "Allow desk:send_email in every run of this account that carries no user, until it is revoked.",
    )
    assert found.remarks == ()


def test_the_rule_that_decides_is_named_with_its_sentence(actor: Actor, account: Account) -> None:
    policy = grant_as_shown(actor, rule(account, condition=(equals("to", "ann"),)))

    found = explain(actor, Question(target="desk:send_email", arguments={"to": "ann"}))

    assert (found.rule, found.rule_sentence) == (policy, rule_sentence(policy))
    assert code(actor, arguments={"to": "bob"}) == "no_rule"


def test_rules_match_the_end_user_of_the_question_also_one_that_does_not_exist(
    actor: Actor, account: Account, customer: EndUser
) -> None:
    grant(None, rule(account, end_user=customer), source=Source.API)
    grant(None, rule(account, "desk:refund"), source=Source.API)

    assert code(actor, user_id="cust_123") == "allow_rule"
    assert code(actor, user_id="nobody_yet") == "no_rule"
    assert code(actor) == "no_rule"
    assert code(actor, "desk:refund") == "allow_rule"
    assert code(actor, "desk:refund", user_id="nobody_yet") == "high_stakes"


def test_the_mode_and_an_approved_plan_decide_as_in_a_run(actor: Actor) -> None:
    assert code(actor, mode="autonomous") == "autonomous"
    assert code(actor, mode="plan") == "plan_first"
    assert code(actor, mode="plan", plan_approved=True) == "no_rule"
    assert code(actor, "desk:get_customer", mode="plan") == "safe"


def test_a_target_that_has_no_server_yet_is_explained_with_a_remark(actor: Actor, account: Account) -> None:
    grant(None, rule(account, "later"), source=Source.API)

    found = explain(actor, Question(target="later:anything"))

    assert found.decision.code.value == "allow_rule"
    assert found.remarks == (
        "There is no server later yet. This is how a call would be decided once there is.",
    )
    assert code(actor, "other:decide_value_observation", mode="autonomous") == "strict"


def test_a_tool_or_server_that_is_not_offered_now_has_a_remark(
    actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "does not offer fly now" in explain(actor, Question(target="desk:fly")).remarks[0]
    monkeypatch.delitem(settings.M3.stdio_servers, "desk")
    assert "cannot be reached" in explain(actor, Question(target="desk:send_email")).remarks[0]


def test_a_suspended_rule_is_explained_with_its_reason(actor: Actor, account: Account) -> None:
    policy = grant_as_shown(actor, rule(account))
    policies.suspend(actor, policy.pk, "Under review.")

    found = explain(actor, Question(target="desk:send_email"))

    assert (found.decision.code.value, found.rule, found.remember) == ("suspended", policy, ())
    assert "Under review." in found.decision.reason


def test_local_tools_are_explained_by_name(actor: Actor) -> None:
    assert (code(actor, "local:Agent"), code(actor, "local:anything")) == ("safe", "no_rule")


def test_explaining_changes_nothing(actor: Actor, account: Account) -> None:
    policy = grant_as_shown(actor, rule(account, condition=exactly({})))
    users, events = EndUser.objects.count(), Event.objects.count()

    assert code(actor) == "allow_rule"
    assert code(actor, user_id="nobody_yet") == "no_rule"

    policy.refresh_from_db()
    assert (policy.hits, policy.last_used_at) == (0, None)
    assert (EndUser.objects.count(), Event.objects.count()) == (users, events)


def test_the_rules_of_another_account_explain_nothing(actor: Actor, other_account: Account) -> None:
    grant(None, rule(other_account), source=Source.API)
    assert code(actor) == "no_rule"
    assert Policy.objects.count() == 1


def test_anybody_in_the_account_may_ask(acting: Acting, vera: User, desk: Server) -> None:
    assert code(acting(vera)) == "no_rule"


@pytest.mark.parametrize(
    "facts",
    [
        {"target": "desk"},
        {"target": "desk*:x"},
        {"arguments": {"x": float("nan")}},
        {"arguments": {1: 2}},
        {"user_id": " "},
        {"mode": "careless"},
    ],
)
def test_what_is_no_question_is_refused(actor: Actor, facts: dict[str, Any]) -> None:
    with pytest.raises(ModelValidationError):
        explain(actor, Question(**{"target": "desk:send_email", **facts}))
