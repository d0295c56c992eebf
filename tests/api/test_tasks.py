"""Tasks over the API: saved, changed, and started with what the request, the task and the agent say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import Agent, Run, Task, User
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]


def saved(caller: Caller, agent: Agent, **more: Any) -> Any:
    response = caller.post("tasks/", {"agent_id": agent.pk, "instructions": "Send the update", **more})
    assert response.status_code == 201, response.content
    return response.json()


def test_a_task_is_saved_with_everything_that_was_asked_for(
    calling: Calling, alice: User, agent: Agent
) -> None:
    asked = {
        "teammate_id": agent.pk,
        "instructions": "Send the update",
        "name": "Weekly",
        "tools": ["desk:send_email"],
        "permission_mode": "plan",
        "user_id": "cust_1",
    }
    caller = calling(alice)

    response = caller.post("tasks/", {**asked, "goals": "clarity", "webhook": False})

    assert response.status_code == 201, response.content
    shown = response.json()
    assert {name: shown[name] for name in asked} == asked
    assert (shown["agent_id"], shown["status"]) == (agent.pk, "enabled")
    assert caller.get(f"tasks/{shown['id']}").json() == shown


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"agent_id": None}, ["agent_id"]),
        ({"agent_id": "1"}, ["agent_id"]),
        ({"teammate_id": 10**6}, ["teammate_id"]),
        ({"instructions": None}, ["instructions"]),
        ({"instructions": "  "}, None),
        ({"instructions": "x" * 20_001}, None),
        ({"name": "x" * 121}, None),
        ({"name": "Week\x1bly"}, None),
        ({"tools": ["desk", "desk"]}, None),
        ({"tools": "desk"}, ["tools"]),
        ({"permission_mode": "yolo"}, ["permission_mode"]),
        ({"user_id": ""}, None),
        ({"schedule": "0 9 * * 1"}, ["schedule"]),
        ({"webhook": True}, ["webhook"]),
        ({"status": "disabled"}, ["status"]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_cannot_be_used_is_a_422_and_saves_nothing(
    calling: Calling, alice: User, agent: Agent, change: dict[str, Any], path: list[str] | None
) -> None:
    response = calling(alice).post("tasks/", {"agent_id": agent.pk, "instructions": "Go", **change})

    assert response.status_code == 422, response.content
    if path is not None:
        assert fields_of(response) == [path]
    assert not Task.objects.exists()


def test_a_change_keeps_what_it_does_not_name(calling: Calling, alice: User, agent: Agent) -> None:
    caller = calling(alice)
    before = saved(caller, agent, name="Weekly", tools=["desk"], permission_mode="plan")

    after = caller.patch(
        f"tasks/{before['id']}", {"instructions": " Send it now ", "status": "enabled"}
    ).json()

    assert after == {**before, "instructions": "Send it now", "updated_at": after["updated_at"]}
    cleared = caller.patch(
        f"tasks/{before['id']}", {"tools": [], "permission_mode": None, "name": None}
    ).json()
    assert (cleared["tools"], cleared["permission_mode"], cleared["name"]) == ([], None, None)
    assert fields_of(caller.patch(f"tasks/{before['id']}", {"tools": 5})) == [["tools"]]


@pytest.mark.parametrize(
    ("asked", "of_task", "of_agent", "mode"),
    [
        ("autonomous", "plan", "approval", "autonomous"),
        (None, "plan", "approval", "plan"),
        (None, None, "approval", "approval"),
        (None, None, "autonomous", "autonomous"),
        ("approval", None, "autonomous", "approval"),
    ],
)
def test_the_mode_is_the_requests_else_the_tasks_else_the_agents(
    calling: Calling,
    alice: User,
    agent: Agent,
    asked: str | None,
    of_task: str | None,
    of_agent: str,
    mode: str,
) -> None:
    caller = calling(alice)
    Agent.objects.update(default_mode=of_agent)
    task = saved(caller, agent, permission_mode=of_task, tools=["desk"], name="Weekly")

    shown = caller.post(f"tasks/{task['id']}/runs", {"permission_mode": asked, "metadata": {"a": 1}})

    assert shown.status_code == 201
    run = shown.json()
    assert (run["permission_mode"], run["human_in_the_loop"]) == (mode, mode != "autonomous")
    assert (run["task_id"], run["task_name"], run["message"]) == (task["id"], "Weekly", "Send the update")
    assert (run["tools"], run["metadata"], run["agent_id"]) == (["desk"], {"a": 1}, agent.pk)
    assert Run.objects.get().started_by == alice


def test_a_task_of_an_end_user_runs_for_that_one_and_no_other(
    calling: Calling, alice: User, agent: Agent
) -> None:
    caller = calling(alice)
    theirs, free = saved(caller, agent, user_id="cust_1")["id"], saved(caller, agent)["id"]

    assert caller.post(f"tasks/{theirs}/runs", {}).json()["user_id"] == "cust_1"
    assert caller.post(f"tasks/{theirs}/runs", {"user_id": "cust_1"}).json()["user_id"] == "cust_1"
    assert caller.post(f"tasks/{theirs}/runs", {"user_id": "cust_2"}).status_code == 404
    assert caller.post(f"tasks/{free}/runs", {"user_id": "cust_2"}).json()["user_id"] == "cust_2"
    assert caller.post(f"tasks/{free}/runs", {}).json()["user_id"] is None
    assert caller.get(f"tasks/{theirs}", user_id="cust_2").status_code == 404
    assert caller.patch(f"tasks/{theirs}?user_id=cust_2", {"name": "Mine"}).status_code == 404
    assert caller.send("DELETE", f"tasks/{theirs}?user_id=cust_2").status_code == 404
    assert [one["id"] for one in caller.get("tasks/").json()["data"]] == [free]
    assert [one["id"] for one in caller.get("tasks/", user_id="cust_1").json()["data"]] == [theirs]


def test_the_list_is_newest_first_by_agent_and_in_pages(calling: Calling, ada: User, agent: Agent) -> None:
    caller = calling(ada)
    made = [saved(caller, agent)["id"] for _ in range(3)]
    other = caller.post("agents/", {"name": "Other"}).json()["id"]
    caller.post("tasks/", {"agent_id": other, "instructions": "Go"})

    first = caller.get("tasks/", teammate_id=agent.pk, limit=2).json()
    rest = caller.get("tasks/", agent_id=agent.pk, starting_after=first["next_starting_after"]).json()

    assert [one["id"] for one in first["data"] + rest["data"]] == made[::-1]
    assert (first["has_more"], rest["has_more"]) == (True, False)


def test_a_deleted_task_leaves_its_runs(calling: Calling, alice: User, agent: Agent) -> None:
    caller = calling(alice)
    task = saved(caller, agent)["id"]
    run = caller.post(f"tasks/{task}/runs", {}).json()["id"]
    assert [one["id"] for one in caller.get("runs/", task_id=task).json()["data"]] == [run]

    assert caller.send("DELETE", f"tasks/{task}").status_code == 204

    assert caller.get(f"tasks/{task}").status_code == 404
    assert caller.get(f"runs/{run}").json()["task_id"] is None


def test_another_accounts_tasks_and_agents_are_not_there(
    calling: Calling, alice: User, otto: User, agent: Agent
) -> None:
    task, caller = saved(calling(alice), agent)["id"], calling(otto)

    assert caller.get("tasks/").json()["data"] == []
    assert caller.get(f"tasks/{task}").status_code == 404
    assert caller.patch(f"tasks/{task}", {"name": "Mine"}).status_code == 404
    assert caller.send("DELETE", f"tasks/{task}").status_code == 404
    assert caller.post(f"tasks/{task}/runs", {}).status_code == 404
    assert caller.post("tasks/", {"agent_id": agent.pk, "instructions": "Go"}).status_code == 404
    assert not Run.objects.exists()


def test_a_viewer_reads_tasks_and_starts_none(
    calling: Calling, alice: User, vera: User, agent: Agent
) -> None:
    task, looking = saved(calling(alice), agent)["id"], calling(vera)

    assert looking.get(f"tasks/{task}").status_code == 200
    for method, path in (("POST", "tasks/"), ("PATCH", f"tasks/{task}"), ("DELETE", f"tasks/{task}")):
        assert looking.send(method, path, {}).status_code == 403
    assert looking.post(f"tasks/{task}/runs", {}).status_code == 403
    assert not Run.objects.exists()


def test_a_task_may_be_saved_with_null_for_its_name_and_tools(
    calling: Calling, alice: User, agent: Agent
) -> None:
    task = saved(calling(alice), agent, name=None, tools=None)
    assert (task["name"], task["tools"]) == (None, [])


def test_zero_is_not_the_false_that_leaves_a_webhook_off(calling: Calling, alice: User, agent: Agent) -> None:
    body = {"agent_id": agent.pk, "instructions": "Go", "webhook": 0}
    assert fields_of(calling(alice).post("tasks/", body)) == [["webhook"]]
    assert saved(calling(alice), agent, webhook=False)["status"] == "enabled"
