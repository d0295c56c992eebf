"""Remembering what was allowed, as m8tes clients do (m8tes-http 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals.models import Policy
from runs.models import Event, Round, Run, Server, Tool, User
from tests.api.conftest import Caller
from tests.api.requests import decide, error_code, request_of

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]


@pytest.mark.parametrize(("user_id", "scope"), [(None, "account"), ("cust_1", "user")])
def test_a_remembered_decision_stores_a_rule_in_the_scope_of_the_run(
    caller: Caller,
    make_run: Callable[..., Run],
    make_round: MakeRound,
    alice: User,
    user_id: str | None,
    scope: str,
) -> None:
    round_ = make_round(run=make_run(user_id=user_id), **_offering(scope))

    assert decide(caller, round_, remember=True).json()["remembered"] is True

    rule = Policy.objects.get()
    assert (rule.target, rule.effect, rule.scope, rule.source) == (
        "desk:send_email",
        "allow",
        scope,
        "run_approval",
    )
    assert (rule.end_user.user_id if rule.end_user else None) == user_id
    assert rule.created_by == alice
    assert request_of(caller, round_)["remembered"] is True


def test_that_a_decision_was_remembered_stays_true_when_its_rule_is_revoked(
    caller: Caller, make_round: MakeRound
) -> None:
    """m8tes-http 2: it never goes back. What is in force now is another list."""
    round_ = make_round()
    decide(caller, round_, remember=True)
    rule = Policy.objects.get()

    assert caller.send("DELETE", f"permissions/{rule.pk}").status_code == 204

    assert caller.get("permissions/").json()["data"] == []
    assert request_of(caller, round_)["remembered"] is True


def _offering(scope: str) -> dict[str, Any]:
    verdict = {"reason": "", "risk": "write", "remember": ["run", scope], "remember_preselected": True}
    return {"verdict": verdict}


def test_a_remembered_decision_closes_the_other_requests_that_it_covers_and_resumes_their_run(
    caller: Caller, make_round: MakeRound
) -> None:
    first = make_round()
    second = make_round(run=first.run)

    decided = decide(caller, first, remember=True).json()

    assert decided["resumed"] is True
    other = request_of(caller, second)
    assert (other["status"], other["auto_resolved"]) == ("allowed", True)
    assert decide(caller, second).status_code == 200
    assert error_code(decide(caller, second, "deny")) == "gate_resolved_otherwise"


def test_remembering_may_be_added_to_a_decision_and_never_taken_away(
    caller: Caller, make_round: MakeRound
) -> None:
    round_ = make_round()

    said = [
        decide(caller, round_, remember=remember).json()["remembered"] for remember in (False, True, False)
    ]

    assert said == [False, True, True]
    assert Policy.objects.count() == 1
    told = Event.objects.filter(run=round_.run_id, type="permission_resolved").order_by("seq")
    assert [event.payload["remembered"] for event in told] == [False, True]


def test_remembering_twice_stores_one_rule(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round()
    decide(caller, round_, remember=True)
    decide(caller, round_, remember=True)

    assert Policy.objects.count() == 1
    assert Event.objects.filter(run=round_.run_id, type="permission_resolved").count() == 1


def test_a_denied_call_remembers_nothing(caller: Caller, make_round: MakeRound) -> None:
    round_ = make_round()

    for _ in range(2):
        assert decide(caller, round_, "deny", remember=True).json()["remembered"] is False
    assert not Policy.objects.exists()


def test_a_strict_tool_is_allowed_once_and_never_remembered(
    caller: Caller, make_round: MakeRound, desk: Server
) -> None:
    Tool.objects.filter(server=desk, name="send_email").update(risk="strict")
    round_ = make_round()

    for _ in range(2):
        decided = decide(caller, round_, remember=True)
        assert (decided.status_code, decided.json()["status"]) == (200, "allowed")
        assert decided.json()["remembered"] is False
    assert not Policy.objects.exists()


def test_a_rule_that_an_admin_suspended_is_not_brought_back_by_a_decision(
    caller: Caller, make_round: MakeRound
) -> None:
    first = make_round()
    decide(caller, first, remember=True)
    Policy.objects.update(suspended_reason="Looked wrong.")
    second = make_round()

    decided = decide(caller, second, remember=True).json()

    assert (decided["status"], decided["remembered"]) == ("allowed", False)
    assert Policy.objects.get().suspended_reason == "Looked wrong."


def test_asking_to_remember_confirms_a_rule_for_high_stakes_and_after_denials(
    caller: Caller, make_round: MakeRound, desk: Server
) -> None:
    decide(caller, make_round(), "deny")
    Tool.objects.filter(server=desk, name="send_email").update(risk="money")

    assert decide(caller, make_round(), remember=True).json()["remembered"] is True
