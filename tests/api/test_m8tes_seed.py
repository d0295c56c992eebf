"""Every piece of code of the page that we started from runs as it is printed (m8tes-http 8.11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.m8tes import Sdk, demo

SEGMENT = {
    "question": "Which customer segment should I prioritize?",
    "header": "Segment",
    "multiSelect": False,
    "options": [
        {"label": "enterprise", "description": "Large orgs (500+ seats)"},
        {"label": "mid-market", "description": "Growing teams"},
    ],
}
MAIL = {"to": "all-hands@northwind.example", "subject": "Weekly", "body": "…"}


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sdk]:
    with demo(tmp_path_factory.mktemp("seed")) as found:
        yield found


@pytest.fixture(scope="module")
def asks(sdk: Sdk) -> int:
    """An agent that asks for the segment and says what it was told."""
    steps = [
        {"ask": {"questions": [SEGMENT]}, "as": "a"},
        {"finish": 'First {{ a.answers."Which customer segment should I prioritize?" }}.'},
    ]
    return sdk.agent("Asks", steps=steps)


@pytest.fixture(scope="module")
def mails(sdk: Sdk) -> int:
    """An agent that sends two mails, each of which needs approval."""
    mails = [{"call": "desk:send_email", "args": MAIL, "as": name} for name in ("first", "second")]
    return sdk.agent("Mails", "desk", steps=[*mails, {"finish": "{{ second.status }}"}])


def tools(sdk: Sdk, **scope: str) -> list[str]:
    return [policy["tool_name"] for policy in sdk.get("permissions/", **scope)["data"]]


def test_quick_start_and_the_reply_that_breaks_it_down_by_region(sdk: Sdk) -> None:
    first = sdk.play("seed.play", block="QUICK_START")

    assert first["run"]["status"] == "completed"
    assert first["printed"] == ["The weekly customer update is out. Sent to all hands."]

    second = sdk.play("seed.play", block="REPLY", run_id=first["run"]["id"])

    assert second["run"] == {
        "id": first["run"]["id"],
        "status": "completed",
        "output": "Sent, broken down by region.",
    }
    assert second["printed"] == ["Sent, broken down by region."]
    requests = sdk.get(f"runs/{first['run']['id']}/permissions")
    assert [(each["tool_name"], each["status"]) for each in requests] == [
        ("AskUserQuestion", "allowed"),
        ("desk:send_email", "allowed"),
        ("desk:send_email", "allowed"),
    ]
    assert requests[0]["tool_input"]["answers"] == {"Which segment?": "enterprise"}


def test_answer_by_the_text_of_the_question(sdk: Sdk, asks: int) -> None:
    run = sdk.parked(asks)

    sdk.play("seed.play", block="ANSWER", run_id=run)

    sdk.awaits(run, "completed")
    assert sdk.get(f"runs/{run}")["output"] == "First enterprise."


def test_look_at_the_question_and_answer_it(sdk: Sdk, asks: int) -> None:
    run = sdk.parked(asks)

    played = sdk.play("seed.play", block="LOOK_AND_ANSWER", run_id=run)

    assert played["printed"] == [
        "Which customer segment should I prioritize? ['enterprise', 'mid-market']",
    ]
    sdk.awaits(run, "completed")
    assert sdk.get(f"runs/{run}")["output"] == "First enterprise."


def test_approve_and_remember_for_this_run_and_the_next(sdk: Sdk, mails: int) -> None:
    run = sdk.parked(mails)

    sdk.play("seed.play", block="APPROVE", run_id=run)

    sdk.awaits(run, "completed")
    [asked] = sdk.get(f"runs/{run}/permissions")
    assert (asked["status"], asked["remembered"]) == ("allowed", True)
    assert ("desk:send_email", "run_approval") in [
        (policy["tool_name"], policy["source"]) for policy in sdk.get("permissions/")["data"]
    ]
    after = sdk.start(mails)
    sdk.awaits(after, "completed")
    assert sdk.get(f"runs/{after}/permissions") == []


def test_switch_the_mode_of_run_42_twice(sdk: Sdk, asks: int) -> None:
    sdk.next_run_is(42)
    assert sdk.parked(asks) == 42

    sdk.play("seed.play", block="SWITCH_MODE")

    run = sdk.get("runs/42")
    assert (run["permission_mode"], run["status"]) == ("approval", "awaiting_approval")
    modes: list[Any] = [
        event["payload"] for event in sdk.get("runs/42/events")["data"] if event["type"] == "run.mode"
    ]
    assert len(modes) == 2
    assert sdk.start(asks) == 43


def test_allow_tools_for_a_user_beforehand(sdk: Sdk) -> None:
    sdk.play("seed.play", block="ALLOW_FOR_A_USER")

    assert {"slack", "linear"} <= set(tools(sdk, user_id="cust_123"))
    assert sdk.get("users/cust_123")["user_id"] == "cust_123"


def test_allow_a_tool_for_the_account_and_revoke_all(sdk: Sdk) -> None:
    sdk.post("permissions/", {"user_id": "cust_124", "tool": "slack"})

    sdk.play("seed.play", block="ALLOW_FOR_THE_ACCOUNT")

    assert (tools(sdk), tools(sdk, user_id="cust_124")) == ([], ["slack"])


def test_onboard_a_user(sdk: Sdk) -> None:
    assert sorted(sdk.play("seed.onboard", user_id="cust_new")) == ["googlesheets", "linear", "slack"]
    assert sorted(tools(sdk, user_id="cust_new")) == ["googlesheets", "linear", "slack"]
