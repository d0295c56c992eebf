"""The timeline names the policy behind a call, and says what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.test import Client

from approvals import policies
from approvals.models import Policy, Source
from approvals.rules import rule_sentence
from runs import timeline
from runs.access import actor_for
from runs.models import Account, Round, Run, User
from runs.run_states import CallPhase
from runs.steps import StepKind
from tests.services.policy_helpers import rule as rule_for

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
ClientFor = Callable[[User], Client]


def allowed_by(policy: Policy) -> dict[str, Any]:
    verdict = {"effect": "allow", "reason": f"Rule {policy.pk} allows it.", "rule_id": policy.pk}
    return {"asked": {}, "phase": CallPhase.DONE.value, "verdict": verdict}


DONE = {"status": "done", "result": 1, "error": None}


def test_a_call_that_a_policy_allowed_says_what_it_says_and_offers_to_revoke_it(
    make_run: MakeRun, add_step: Any, ada: User, vera: User, client_for: ClientFor
) -> None:
    run = make_run()
    policy = policies.grant(None, rule_for(run.account), source=Source.API)
    add_step(run, StepKind.CALL, {}, DONE, **allowed_by(policy))

    page = client_for(ada).get(f"/runs/{run.pk}").content.decode()
    assert f"Allowed by the policy: {rule_sentence(policy)}" in page
    assert f'href="/policies/{policy.pk}/revoke"' in page
    assert "/revoke" not in client_for(vera).get(f"/runs/{run.pk}").content.decode()


def test_a_policy_that_is_gone_says_who_revoked_it_and_offers_nothing(
    make_run: MakeRun, add_step: Any, ada: User, client_for: ClientFor
) -> None:
    run = make_run()
    policy = policies.grant(None, rule_for(run.account), source=Source.API)
    sentence, number = rule_sentence(policy), policy.pk
    add_step(run, StepKind.CALL, {}, DONE, **allowed_by(policy))
    policies.revoke(actor_for(ada), number)

    row = timeline.page(run).rows[-1]
    assert row.rule is not None
    assert (row.rule.sentence, row.rule.gone.partition(" on ")[0]) == (sentence, "ada revoked it")
    page = client_for(ada).get(f"/runs/{run.pk}").content.decode()
    assert "ada revoked it on" in page
    assert "/revoke" not in page


def test_a_policy_of_another_account_is_never_named(
    make_run: MakeRun, add_step: Any, other_account: Account
) -> None:
    run = make_run()
    theirs = policies.grant(None, rule_for(other_account, "secret:tool"), source=Source.API)
    add_step(run, StepKind.CALL, {}, DONE, **allowed_by(theirs))
    assert "secret" not in repr(timeline.page(run).rows)


def test_naming_policies_costs_two_queries_however_many_there_are(
    make_run: MakeRun, add_step: Any, ada: User, django_assert_num_queries: Callable[[int], Any]
) -> None:
    run = make_run()
    for number in range(6):
        policy = policies.grant(None, rule_for(run.account, f"desk:t{number}"), source=Source.API)
        add_step(run, StepKind.CALL, {}, DONE, **allowed_by(policy))
        if number % 2:
            policies.revoke(actor_for(ada), policy.pk)
    with django_assert_num_queries(5 + 2):
        timeline.page(run)


def test_a_call_that_a_policy_denied_names_it_too(make_run: MakeRun, add_step: Any) -> None:
    run = make_run()
    denied = {"effect": "deny", "reason": "Rule 3 denies it.", "rule_id": 3}
    result = {"status": "denied", "result": None, "error": "Rule 3 denies it."}
    add_step(run, StepKind.CALL, {}, result, asked={}, phase=CallPhase.DENIED.value, verdict=denied)
    row = timeline.page(run).rows[-1]
    assert (row.reason, row.rule.lead if row.rule else None) == ("", "Denied by the policy:")
