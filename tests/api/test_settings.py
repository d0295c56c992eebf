"""The account's settings over the API, and what requiring end users means for runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import Agent, Run, User
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]


def test_the_settings_say_what_there_is(calling: Calling, vera: User) -> None:
    shown = calling(vera).get("settings/").json()

    assert (shown["require_end_user_id"], shown["approval_email_enabled"]) == (False, True)
    assert (shown["approval_slack_enabled"], shown["retention_mode"]) == (False, "standard")
    assert shown["per_end_user_run_limit"] is None


def test_a_change_keeps_what_it_does_not_name(calling: Calling, ada: User) -> None:
    caller = calling(ada)

    shown = caller.patch(
        "settings/", {"approval_email_enabled": False, "approval_slack_enabled": False}
    ).json()

    assert (shown["require_end_user_id"], shown["approval_email_enabled"]) == (False, False)
    assert caller.patch("settings/", {"require_end_user_id": True}).json() == {
        **shown,
        "require_end_user_id": True,
    }
    assert caller.get("settings/").json() == {**shown, "require_end_user_id": True}


@pytest.mark.parametrize(
    "change",
    [
        {"require_end_user_id": "yes"},
        {"require_end_user_id": None},
        {"approval_email_enabled": 1},
        {"approval_slack_enabled": True},
        {"result_email_enabled": True},
        {"retention_mode": "metadata_only"},
        {"per_end_user_run_limit": 10},
        {"per_end_user_cost_limit_cents": 10},
        {"per_end_user_rate_per_minute": 10},
    ],
    ids=str,
)
def test_what_nobody_would_keep_is_refused_and_changes_nothing(
    calling: Calling, ada: User, change: dict[str, Any]
) -> None:
    caller = calling(ada)
    before = caller.get("settings/").json()

    assert fields_of(caller.patch("settings/", {"approval_email_enabled": False, **change})) == [[*change]]
    assert caller.get("settings/").json() == before


def test_only_an_admin_changes_settings(calling: Calling, alice: User, vera: User) -> None:
    for person in (alice, vera):
        assert calling(person).patch("settings/", {"require_end_user_id": True}).status_code == 403
    assert calling(vera).get("settings/").json()["require_end_user_id"] is False


def test_where_end_users_are_required_a_run_for_nobody_does_not_start(
    calling: Calling, ada: User, agent: Agent
) -> None:
    caller = calling(ada)
    task = caller.post("tasks/", {"agent_id": agent.pk, "instructions": "Go"}).json()["id"]
    caller.patch("settings/", {"require_end_user_id": True})
    body = {"agent_id": agent.pk, "message": "Go"}

    for response in (caller.post("runs/", body), caller.post(f"tasks/{task}/runs", {})):
        assert fields_of(response) == [["user_id"]]
        assert response.json()["error"]["error_code"] == "end_user_id_required"
    assert not Run.objects.exists()
    started = caller.post("runs/", {**body, "user_id": "cust_1"}).json()
    assert started["user_id"] == "cust_1"
    assert caller.get(f"runs/{started['id']}").status_code == 200
    assert caller.post(f"tasks/{task}/runs", {"user_id": "cust_1"}).status_code == 201
