"""Tools allowed beforehand (m8tes-http 3, 4.3): made once per scope and tool, listed and revoked in their scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals import policies
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.policies import Rule, grant
from runs.access import actor_for
from runs.models import Account, EndUser, LedgerEntry, Round, Run, Server, Tool, User
from tests.api.conftest import Caller, fields_of
from tests.api.requests import request_of

Calling = Callable[[User], Caller]
MakeRound = Callable[..., Round]


@pytest.fixture
def caller(calling: Calling, ada: User) -> Caller:
    return calling(ada)


def create(caller: Caller, tool: str, user_id: str | None = None) -> dict[str, Any]:
    response = caller.post("permissions/", {"user_id": user_id, "tool": tool})
    assert response.status_code == 201, response.content
    made: dict[str, Any] = response.json()
    return made


def tools(caller: Caller, **query: Any) -> list[str]:
    return [policy["tool_name"] for policy in caller.get("permissions/", **query).json()["data"]]


@pytest.mark.parametrize("body", [{"tool": "slack"}, {"tool": "slack", "user_id": None}], ids=str)
def test_without_a_user_it_is_for_runs_that_carry_none(caller: Caller, body: dict[str, Any]) -> None:
    made = caller.post("permissions/", body)

    assert made.status_code == 201
    assert made.json() == {
        "id": made.json()["id"],
        "user_id": None,
        "tool_name": "slack",
        "created_at": made.json()["created_at"],
        "source": "api",
        "rule": "Allow every tool of slack in every run of this account that carries no user, "
        "until it is revoked.",
        "expires_at": None,
    }
    assert made.json()["created_at"].endswith("Z")


def test_a_user_is_made_by_first_use_and_the_rule_is_theirs_alone(caller: Caller) -> None:
    made = create(caller, "slack:post", "cust 1@x")

    assert (made["user_id"], made["tool_name"]) == ("cust 1@x", "slack:post")
    assert EndUser.objects.get().user_id == "cust 1@x"
    assert tools(caller) == []
    assert tools(caller, user_id="cust 1@x") == ["slack:post"]


def test_the_same_again_is_the_same_rule_in_each_scope(caller: Caller) -> None:
    ids = [create(caller, "slack", user)["id"] for user in (None, None, "cust_1", "cust_1", "cust_2")]

    assert ids[0] == ids[1]
    assert ids[2] == ids[3]
    assert len(set(ids)) == 3


def test_calls_that_wait_and_are_covered_go_on(
    caller: Caller, make_run: Callable[..., Run], make_round: MakeRound
) -> None:
    mine, other = make_round(), make_round(run=make_run(user_id="cust_1"))

    create(caller, "desk")

    request = request_of(caller, mine)
    assert (request["status"], request["auto_resolved"]) == ("allowed", True)
    assert request_of(caller, other)["status"] == "pending"


def test_a_high_stakes_tool_may_be_allowed_beforehand(
    caller: Caller, make_round: MakeRound, desk: Server
) -> None:
    Tool.objects.filter(server=desk, name="send_email").update(risk="money")
    pending = make_round()

    create(caller, "desk:send_email")

    assert request_of(caller, pending)["status"] == "allowed"


def test_a_strict_tool_asks_all_the_same(caller: Caller, make_round: MakeRound, desk: Server) -> None:
    Tool.objects.filter(server=desk, name="send_email").update(risk="strict")
    pending = make_round()

    create(caller, "desk:send_email")

    assert request_of(caller, pending)["status"] == "pending"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "tool"),
        ({"tool": ""}, "tool"),
        ({"tool": 5}, "tool"),
        ({"tool": None}, "tool"),
        ({"tool": "x" * 301}, "tool"),
        ({"tool": "slack", "user_id": ""}, "user_id"),
        ({"tool": "slack", "user_id": 5}, "user_id"),
        ({"tool": "slack", "user_id": "u" * 201}, "user_id"),
    ],
    ids=str,
)
def test_a_body_that_does_not_fit_makes_nothing(caller: Caller, body: dict[str, Any], path: str) -> None:
    assert fields_of(caller.post("permissions/", body)) == [[path]]
    assert not Policy.objects.exists()


@pytest.mark.parametrize("tool", ["*", "slack:", ":post", "sl ack", "slack*"])
def test_a_tool_is_a_server_or_one_of_its_tools_without_wildcards(caller: Caller, tool: str) -> None:
    response = caller.post("permissions/", {"tool": tool, "user_id": "cust_1"})

    assert response.status_code == 422
    assert not Policy.objects.exists()
    assert not EndUser.objects.exists()


def test_the_list_is_newest_first_in_pages(caller: Caller) -> None:
    for tool in ("a", "b", "c"):
        create(caller, tool)

    first = caller.get("permissions/", limit=2).json()
    rest = caller.get("permissions/", limit=2, starting_after=first["next_starting_after"]).json()

    assert [policy["tool_name"] for policy in first["data"]] == ["c", "b"]
    assert [policy["tool_name"] for policy in rest["data"]] == ["a"]
    assert (first["has_more"], rest["has_more"]) == (True, False)


def test_an_empty_user_is_a_mistake_in_a_query(caller: Caller) -> None:
    made = create(caller, "slack")

    assert fields_of(caller.get("permissions/", user_id="")) == [["user_id"]]
    assert fields_of(caller.send("DELETE", f"permissions/{made['id']}?user_id=")) == [["user_id"]]
    assert Policy.objects.exists()


def test_a_rule_remembered_with_a_decision_is_listed_with_its_source(
    caller: Caller, make_round: MakeRound
) -> None:
    pending = make_round()
    caller.post(
        f"runs/{pending.run_id}/approve", {"request_id": pending.pk, "decision": "allow", "remember": True}
    )

    [policy] = caller.get("permissions/").json()["data"]

    assert (policy["tool_name"], policy["source"]) == ("desk:send_email", "run_approval")


def test_only_standing_allow_rules_are_listed_or_revoked(
    caller: Caller, account: Account, make_run: Callable[..., Run]
) -> None:
    deny = Rule(account=account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="slack")
    of_run = Rule(account=account, effect=Effect.ALLOW, scope=Scope.RUN, target="desk", run=make_run())
    others = [grant(None, rule, source=Source.API) for rule in (deny, of_run)]

    assert tools(caller) == []
    for policy in others:
        assert caller.send("DELETE", f"permissions/{policy.pk}").status_code == 404
    assert Policy.objects.count() == 2


def test_revoking_needs_the_scope_of_the_rule_and_leaves_word(caller: Caller) -> None:
    account, user = create(caller, "slack")["id"], create(caller, "slack", "cust_1")["id"]

    def delete(policy_id: int, query: str = "") -> int:
        status: int = caller.send("DELETE", f"permissions/{policy_id}{query}").status_code
        return status

    assert delete(account, "?user_id=cust_1") == 404
    assert delete(user) == 404
    assert delete(user, "?user_id=cust_2") == 404
    assert Policy.objects.count() == 2
    assert delete(account) == 204
    assert delete(user, "?user_id=cust_1") == 204
    assert delete(account) == 404
    assert not Policy.objects.exists()
    assert LedgerEntry.objects.filter(action="policy.revoked", actor_name="ada").count() == 2


def test_the_rules_of_another_account_are_not_there(
    caller: Caller, calling: Calling, otto: User, account: Account
) -> None:
    made = create(caller, "slack")
    otto.memberships.update(role="admin")

    assert tools(calling(otto)) == []
    assert calling(otto).send("DELETE", f"permissions/{made['id']}").status_code == 404
    assert Policy.objects.exists()


def test_an_operator_sees_the_rules_and_may_not_make_any(calling: Calling, alice: User) -> None:
    assert calling(alice).get("permissions/").status_code == 200
    assert calling(alice).post("permissions/", {"tool": "slack"}).status_code == 403
    assert not Policy.objects.exists()


def test_saying_the_same_again_does_not_lift_a_suspension(caller: Caller, ada: User) -> None:
    made = create(caller, "slack:post")
    policies.suspend(actor_for(ada), made["id"], "not before we have talked")

    again = caller.post("permissions/", {"user_id": None, "tool": "slack:post"})

    assert again.status_code == 409
    assert "not before we have talked" in again.json()["error"]["message"]
    assert Policy.objects.get().suspended_reason == "not before we have talked"


def test_a_tool_whose_definition_changed_is_not_allowed_anew_without_a_look(
    caller: Caller, desk: Server
) -> None:
    create(caller, "desk:send_email")
    Tool.objects.filter(server=desk, name="send_email").update(digest="sha256:other")

    assert caller.post("permissions/", {"user_id": None, "tool": "desk:send_email"}).status_code == 409
