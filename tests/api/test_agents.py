"""Agents over the API: an embedder sets one up, changes it and takes it away without opening a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import Account, Agent, EndUser, Membership, Run, Server, User
from runs.turns import current
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]

STEPS = {"steps": [{"call": "desk:send_email", "args": {"to": "ann@example.com"}}]}


def test_an_agent_is_made_with_everything_that_was_asked_for(
    calling: Calling, ada: User, desk: Server
) -> None:
    asked = {
        "name": "Billing",
        "instructions": "Be brief.",
        "definition": STEPS,
        "servers": ["desk"],
        "default_permission_mode": "plan",
        "elicitation_timeout": "15m",
        "metadata": {"team": 7},
        "user_id": "cust 1",
    }

    response = calling(ada).post("agents/", {**asked, "model": "any", "email_inbox": True})

    assert response.status_code == 201, response.content
    shown = response.json()
    assert {name: shown[name] for name in asked} == asked
    assert (shown["status"], shown["harness"], shown["tools"]) == ("enabled", "playbook", ["desk"])
    assert calling(ada).get(f"agents/{shown['id']}").json() == shown
    stored = Agent.objects.get(pk=shown["id"])
    assert stored.end_user is not None
    assert (stored.end_user.user_id, list(stored.servers.all())) == ("cust 1", [desk])


def test_servers_may_be_called_tools_but_not_be_two_things(calling: Calling, ada: User, desk: Server) -> None:
    caller = calling(ada)

    assert caller.post("agents/", {"name": "A", "tools": ["desk"]}).json()["servers"] == ["desk"]
    assert fields_of(caller.post("agents/", {"name": "B", "tools": ["desk"], "servers": []})) == [["tools"]]
    assert fields_of(caller.post("agents/", {"name": "B", "servers": ["desk", "slack"]})) == [["servers", 1]]
    assert Agent.objects.count() == 1


def test_an_agent_without_a_definition_says_so_when_it_runs(
    calling: Calling, ada: User, account: Account
) -> None:
    made = calling(ada).post("agents/", {"name": "Only a name"}).json()

    run = Run.objects.get(
        pk=calling(ada).post("runs/", {"agent_id": made["id"], "message": "Go"}).json()["id"]
    )
    turn = current(run)
    assert turn is not None
    assert turn.definition == {"steps": [{"fail": "This agent has no steps yet. Give it a definition."}]}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, ["name"]),
        ({"name": 5}, ["name"]),
        ({"name": "Customer success"}, ["name"]),
        ({"instructions": "x" * 50_001}, ["instructions"]),
        ({"harness": "telepathy"}, None),
        ({"definition": []}, ["definition"]),
        ({"definition": {"steps": [{"dance": 1}]}}, ["definition"]),
        ({"definition": {"steps": [{"call": "desk:fly"}]}, "servers": ["desk"]}, ["definition"]),
        ({"servers": "desk"}, ["servers"]),
        ({"servers": ["desk"] * 101}, ["servers"]),
        ({"default_permission_mode": "yolo"}, ["default_permission_mode"]),
        ({"elicitation_timeout": "soon"}, ["elicitation_timeout"]),
        ({"status": "asleep"}, ["status"]),
        ({"metadata": [1]}, ["metadata"]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_cannot_be_used_is_a_422_and_changes_nothing(
    calling: Calling, ada: User, agent: Agent, change: dict[str, Any], path: list[str] | None
) -> None:
    caller = calling(ada)
    other = caller.post("agents/", {"name": "Other", "servers": ["desk"]}).json()

    for response in (
        caller.patch(f"agents/{other['id']}", change),
        caller.post("agents/", {"name": "New", **change}),
    ):
        assert response.status_code == 422, response.content
        if path is not None:
            assert fields_of(response) == [path]
    assert caller.get(f"agents/{other['id']}").json() == other
    assert Agent.objects.count() == 2


def test_a_change_leaves_alone_what_it_does_not_name(calling: Calling, ada: User, agent: Agent) -> None:
    caller = calling(ada)
    before = caller.patch(f"agents/{agent.pk}", {"metadata": {"a": 1, "b": 2}}).json()

    after = caller.patch(
        f"agents/{agent.pk}", {"default_permission_mode": "plan", "metadata": {"c": 3}}
    ).json()

    assert after == {
        **before,
        "default_permission_mode": "plan",
        "metadata": {"c": 3},
        "updated_at": after["updated_at"],
    }
    assert after["servers"] == ["desk"]
    assert caller.patch(f"agents/{agent.pk}", {}).json()["metadata"] == {"c": 3}


def test_a_disabled_agent_starts_nothing(calling: Calling, ada: User, agent: Agent) -> None:
    caller = calling(ada)

    assert caller.patch(f"agents/{agent.pk}", {"status": "disabled"}).json()["status"] == "disabled"
    assert caller.post("runs/", {"agent_id": agent.pk, "message": "Go"}).status_code == 422
    assert caller.patch(f"agents/{agent.pk}", {"status": "enabled"}).json()["status"] == "enabled"
    assert caller.post("runs/", {"agent_id": agent.pk, "message": "Go"}).status_code == 201


def test_an_agent_that_never_ran_can_be_deleted_and_one_that_ran_says_what_to_do(
    calling: Calling, ada: User, agent: Agent, make_run: MakeRun
) -> None:
    caller = calling(ada)
    spare = caller.post("agents/", {"name": "Spare"}).json()["id"]
    make_run()

    assert caller.send("DELETE", f"agents/{spare}").status_code == 204
    assert caller.get(f"agents/{spare}").status_code == 404
    refused = caller.send("DELETE", f"agents/{agent.pk}")
    assert refused.status_code == 409
    assert "Disable it instead" in refused.json()["error"]["message"]
    assert refused.json()["error"]["details"]["runs"] == 1
    assert Agent.objects.get() == agent


def test_the_list_is_of_one_scope_newest_first_and_in_pages(
    calling: Calling, ada: User, vera: User, agent: Agent
) -> None:
    caller = calling(ada)
    for name, user_id in (("One", None), ("Two", None), ("Theirs", "cust_1")):
        caller.post("agents/", {"name": name, "user_id": user_id})
    looking = calling(vera)

    first = looking.get("agents/", limit=2).json()
    rest = looking.get("agents/", limit=2, starting_after=first["next_starting_after"]).json()

    assert [one["name"] for one in first["data"] + rest["data"]] == ["Two", "One", "Customer success"]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert [one["name"] for one in looking.get("agents/", user_id="cust_1").json()["data"]] == ["Theirs"]
    assert looking.get("agents/", user_id="cust_2").json()["data"] == []
    assert (
        looking.get("agents/", fields="summary")
        .json()["data"][0]
        .keys()
        .isdisjoint({"definition", "metadata"})
    )


def test_an_agent_of_an_end_user_is_not_there_for_another(
    calling: Calling, ada: User, account: Account
) -> None:
    caller = calling(ada)
    theirs = caller.post("agents/", {"name": "Theirs", "user_id": "cust_1"}).json()["id"]

    assert caller.get(f"agents/{theirs}", user_id="cust_1").status_code == 200
    assert caller.get(f"agents/{theirs}", user_id="cust_2").status_code == 404
    assert caller.patch(f"agents/{theirs}?user_id=cust_2", {"name": "Mine"}).status_code == 404
    assert caller.send("DELETE", f"agents/{theirs}?user_id=cust_2").status_code == 404
    run = {"agent_id": theirs, "message": "Go"}
    assert caller.post("runs/", {**run, "user_id": "cust_2"}).status_code == 404
    assert caller.post("runs/", run).json()["user_id"] == "cust_1"
    assert caller.post("runs/", {**run, "user_id": "cust_1"}).json()["user_id"] == "cust_1"
    assert set(EndUser.objects.values_list("user_id", flat=True)) == {"cust_1"}


@pytest.mark.parametrize("who", ["alice", "vera"])
def test_only_an_admin_changes_agents(
    calling: Calling, agent: Agent, who: str, request: pytest.FixtureRequest
) -> None:
    caller = calling(request.getfixturevalue(who))

    assert caller.get(f"agents/{agent.pk}").status_code == 200
    assert caller.post("agents/", {"name": "New"}).status_code == 403
    assert caller.patch(f"agents/{agent.pk}", {"name": "New"}).status_code == 403
    assert caller.send("DELETE", f"agents/{agent.pk}").status_code == 403
    assert Agent.objects.get().name == "Customer success"


def test_another_accounts_agents_and_servers_are_not_there(
    calling: Calling, otto: User, other_account: Account, agent: Agent
) -> None:
    Membership.objects.filter(user=otto).update(role="admin")
    caller = calling(otto)

    assert caller.get("agents/").json()["data"] == []
    assert caller.get(f"agents/{agent.pk}").status_code == 404
    assert caller.patch(f"agents/{agent.pk}", {"name": "Mine"}).status_code == 404
    assert caller.send("DELETE", f"agents/{agent.pk}").status_code == 404
    assert fields_of(caller.post("agents/", {"name": "Mine", "servers": ["desk"]})) == [["servers", 0]]
