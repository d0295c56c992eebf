"""The m8tes SDK, unmodified, against a live server: agents, tasks, end users, tools, settings, lists, webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.m8tes import Sdk
from tests.core.pages import code, rows, section
from tests.mcp.bindings import wait_for
from tests.services.receiver import receiver


def test_the_methods_that_the_docs_name_are_those_of_the_sdk(sdk: Sdk) -> None:
    named = []
    for resource, methods in rows(section("docs/api.md", "## With the m8tes SDK")):
        prefix = code(resource)[0].removeprefix("client.")
        named += [f"{prefix}.{method}" for method in code(methods) if method != "definition"]

    assert len(named) > 30
    assert sdk.play("resources.unknown", names=named) == []


def test_agents_are_made_changed_found_and_deleted(sdk: Sdk) -> None:
    assert sdk.play("resources.agents") == {
        "made": ["Embedded", ["desk"], "approval", "enabled"],
        "changed": ["Embedded, renamed", "Be brief."],
        "found": "Embedded, renamed",
        "left": False,
    }


def test_a_task_is_saved_and_run(sdk: Sdk, agents: dict[str, int]) -> None:
    told = sdk.play("resources.tasks", agent_id=agents["talks"])

    assert told["task"] == [agents["talks"], "go"]
    assert told["run"] == ["running", True, {"ticket": "T-82"}]
    assert (told["ended"], told["waited"], told["runs"]) == (["completed", "Bye."], "completed", 2)
    assert (told["names"], told["left"]) == (["Every week", "Every week"], False)


@pytest.mark.parametrize("user_id", ["cust_7", "ann @ northwind?#%"])
def test_end_users_have_profiles_under_any_id(sdk: Sdk, user_id: str) -> None:
    assert sdk.play("resources.users", user_id=user_id) == {
        "made": [user_id, "Ann"],
        "changed": ["Northwind", "Ann", {"plan": "pro"}],
        "found": True,
        "left": False,
    }


def test_a_tool_is_allowed_for_one_user_once_and_revoked(sdk: Sdk) -> None:
    assert sdk.play("resources.permissions", user_id="cust_8") == {
        "same": True,
        "listed": [["slack", "cust_8", "api"]],
        "in the account's scope": False,
        "left": [],
    }


def test_settings_are_read_and_changed(sdk: Sdk) -> None:
    assert sdk.play("resources.settings") == [False, True, "standard"]


def test_autonomous_mode_lets_a_waiting_call_through(sdk: Sdk, agents: dict[str, int]) -> None:
    assert sdk.play("resources.mode", run_id=sdk.parked(agents["mails"])) == [
        "autonomous",
        "completed",
        ["allowed"],
    ]


def test_a_list_is_read_page_by_page_newest_first(sdk: Sdk) -> None:
    agent = sdk.agent("Many", mode="autonomous", steps=[{"finish": "ok"}])
    sdk.start(agent, user_id="cust_9")

    told = sdk.play("resources.paging", agent_id=agent, runs=5)

    assert told["all"] == sorted(told["made"], reverse=True)
    assert told["page"] == told["all"][:2]
    assert (told["default"], told["for users"]) == (5, ["cust_9"])
    assert (told["summary"], told["files"]) == ([None], [])


def test_a_start_that_is_sent_twice_happens_once(sdk: Sdk, agents: dict[str, int]) -> None:
    assert sdk.play("resources.sent_twice", agent_id=agents["talks"]) == [True]


def test_webhooks_are_signed_as_the_sdk_checks_it(sdk: Sdk, agents: dict[str, int]) -> None:
    with receiver() as there:
        endpoint = sdk.play("resources.webhooks", url=there.url)
        run = sdk.start(agents["asks"])
        [asked] = there.wait(1)
        log = f"webhooks/{endpoint['id']}/deliveries"
        wait_for(lambda: sdk.get(log)["data"][0]["status"] == "success", "the delivery to be noted")
    body = sdk.up.data_dir / "webhook-body"
    body.write_bytes(asked.body)
    verified = sdk.play(
        "resources.verify", body=str(body), headers=dict(asked.headers), secret=endpoint["secret"]
    )

    assert sorted(endpoint["events"]) == ["run.awaiting_input", "run.completed"]
    assert endpoint["shown later"] == f"{endpoint['secret'][:4]}..."
    assert endpoint["listed"] == [endpoint["id"]]
    assert verified == [True, False, False]
    printed: dict[str, Any] = sdk.play("seed.awaiting_input")
    assert asked.message["type"] == printed["type"]
    assert printed["data"].keys() <= asked.message["data"].keys()
    assert (asked.message["data"]["id"], asked.message["data"]["status"]) == (run, "awaiting_approval")
    [question], [like] = asked.message["data"]["questions"], printed["data"]["questions"]
    assert question.keys() == like.keys()
    assert sdk.play("resources.deliveries", webhook_id=endpoint["id"]) == [
        ["run.awaiting_input", "success", 1],
        True,
    ]
