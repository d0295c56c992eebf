"""End users over the API: profiles, ids of any characters, and what removing one leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from approvals.models import Policy
from runs.models import Account, Agent, EndUser, Run, Turn, User
from tests.api.conftest import Caller, fields_of

Calling = Callable[[User], Caller]
MakeRun = Callable[..., Run]

PROFILE = {
    "name": "Ann",
    "email": "ann@example.com",
    "company": "Northwind",
    "metadata": {"plan": "pro", "seats": 3},
}


def test_a_user_is_made_once_with_a_profile(calling: Calling, alice: User) -> None:
    caller = calling(alice)

    made = caller.post("users/", {"user_id": "cust_1", **PROFILE, "from_the_future": 1})

    assert made.status_code == 201, made.content
    shown = made.json()
    assert {name: shown[name] for name in PROFILE} == PROFILE
    assert (shown["user_id"], shown["run_limit"]) == ("cust_1", None)
    assert caller.get("users/cust_1").json() == shown
    again = caller.post("users/", {"user_id": "cust_1"})
    assert (again.status_code, again.json()["error"]["error_code"]) == (409, "user_exists")
    assert caller.get("users/cust_1").json() == shown


@pytest.mark.parametrize("character", ["\x07", "\t", "\n", "\x1b", "\x7f"])
def test_neither_an_id_nor_a_name_has_control_characters(
    calling: Calling, alice: User, agent: Agent, character: str
) -> None:
    caller = calling(alice)
    run = {"agent_id": agent.pk, "message": "Go", "user_id": f"cust{character}1"}

    for refused, field in (
        (caller.post("users/", {"user_id": f"cust{character}1"}), "user_id"),
        (caller.post("runs/", run), "user_id"),
        (caller.post("users/", {"user_id": "cust_1", "name": f"Ann{character}Lee"}), "name"),
    ):
        assert refused.status_code == 422, refused.content
        assert fields_of(refused) == [[field]]
    assert not EndUser.objects.exists()


def test_a_user_that_a_run_named_first_exists_already(calling: Calling, alice: User, agent: Agent) -> None:
    caller = calling(alice)
    caller.post("runs/", {"agent_id": agent.pk, "message": "Go", "user_id": "cust_1"})

    assert caller.post("users/", {"user_id": "cust_1", "name": "Ann"}).status_code == 409
    shown = caller.get("users/cust_1").json()
    assert (shown["name"], shown["email"], shown["metadata"]) == (None, None, {})


@pytest.mark.parametrize(
    "user_id",
    ["with space", "ann@example.com", "a?b=c&d", "a#b", "50%", "Zoë", "a:b;c,d+e", "a/b", "a/", "/a", "a//b"],
)
def test_an_id_of_any_characters_is_found_by_its_encoded_address(
    calling: Calling, ada: User, account: Account, user_id: str
) -> None:
    caller = calling(ada)
    address = f"users/{quote(user_id, safe='')}"
    caller.post("users/", {"user_id": user_id})

    assert caller.get(address).json()["user_id"] == user_id
    assert caller.patch(address, {"name": "Ann"}).json()["name"] == "Ann"
    assert caller.send("DELETE", address).status_code == 204
    assert caller.get(address).status_code == 404


def test_a_slash_in_an_id_need_not_be_encoded_and_names_nobody_else(calling: Calling, ada: User) -> None:
    caller = calling(ada)
    for user_id in ("a", "b", "a/b"):
        caller.post("users/", {"user_id": user_id})

    assert caller.get("users/a/b").json()["user_id"] == "a/b"
    assert caller.send("DELETE", "users/a%2Fb").status_code == 204
    assert caller.get("users/a/b").status_code == 404
    assert [one["user_id"] for one in caller.get("users/").json()["data"]] == ["b", "a"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, ["user_id"]),
        ({"user_id": None}, ["user_id"]),
        ({"user_id": 5}, ["user_id"]),
        ({"user_id": ""}, None),
        ({"user_id": "  "}, None),
        ({"user_id": "x" * 201}, None),
        ({"user_id": "u", "email": "nowhere"}, ["email"]),
        ({"user_id": "u", "name": "x" * 201}, ["name"]),
        ({"user_id": "u", "metadata": "text"}, ["metadata"]),
        ({"user_id": "u", "metadata": {"a": "x" * 20_000}}, ["metadata"]),
        ({"user_id": "u", "run_limit": 0}, ["run_limit"]),
        ({"user_id": "u", "cost_limit_cents": 100}, ["cost_limit_cents"]),
        ({"user_id": "u", "rate_per_minute": 5}, ["rate_per_minute"]),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_cannot_be_used_is_a_422_and_makes_nobody(
    calling: Calling, alice: User, body: dict[str, Any], path: list[str] | None
) -> None:
    response = calling(alice).post("users/", body)

    assert response.status_code == 422
    if path is not None:
        assert fields_of(response) == [path]
    assert not EndUser.objects.exists()


def test_a_change_replaces_metadata_as_a_whole_and_keeps_what_it_does_not_name(
    calling: Calling, alice: User
) -> None:
    caller = calling(alice)
    caller.post("users/", {"user_id": "cust_1", **PROFILE})

    shown = caller.patch(
        "users/cust_1", {"metadata": {"plan": "free"}, "company": None, "run_limit": None}
    ).json()

    assert (shown["name"], shown["company"], shown["metadata"]) == ("Ann", None, {"plan": "free"})
    assert caller.patch("users/nobody", {"name": "X"}).status_code == 404
    assert fields_of(caller.patch("users/cust_1", {"email": "x"})) == [["email"]]


def test_the_list_is_newest_first_and_in_pages(calling: Calling, alice: User, vera: User) -> None:
    for user_id in ("a", "b", "c"):
        calling(alice).post("users/", {"user_id": user_id})

    first = calling(vera).get("users/", limit=2).json()
    rest = calling(vera).get("users/", limit=2, starting_after=first["next_starting_after"]).json()

    assert [one["user_id"] for one in first["data"] + rest["data"]] == ["c", "b", "a"]
    assert (first["has_more"], rest["has_more"]) == (True, False)


def test_a_user_with_a_live_run_is_not_removed(
    calling: Calling, ada: User, agent: Agent, make_run: MakeRun
) -> None:
    run, caller = make_run(user_id="cust_1"), calling(ada)

    refused = caller.send("DELETE", "users/cust_1")

    assert (refused.status_code, refused.json()["error"]["details"]["live_runs"]) == (409, 1)
    assert caller.get("users/cust_1").status_code == 200
    run.refresh_from_db()
    assert run.status == "queued"


def test_removing_a_user_ends_their_rules_and_empties_their_profile_but_keeps_their_runs(
    calling: Calling, ada: User, make_run: MakeRun
) -> None:
    run, caller = make_run(user_id="cust_1"), calling(ada)
    caller.post(f"runs/{run.pk}/cancel")
    caller.patch("users/cust_1", PROFILE)
    user = EndUser.objects.get()
    Policy.objects.create(
        account=run.account, effect="allow", scope="user", end_user=user, target_server="desk", source="api"
    )

    assert caller.send("DELETE", "users/cust_1").status_code == 204

    assert not Policy.objects.exists()
    assert caller.get("users/cust_1").status_code == 404
    assert caller.get("users/").json()["data"] == []
    assert caller.send("DELETE", "users/cust_1").status_code == 404
    assert [one["id"] for one in caller.get("runs/", user_id="cust_1").json()["data"]] == [run.pk]
    user.refresh_from_db()
    assert (user.name, user.email, user.company, user.metadata) == ("", "", "", {})


def test_a_user_whom_nothing_names_leaves_no_row(calling: Calling, ada: User) -> None:
    caller = calling(ada)
    caller.post("users/", {"user_id": "cust_1"})

    caller.send("DELETE", "users/cust_1")

    assert not EndUser.objects.exists()


@pytest.mark.parametrize("way", ["profile", "run"])
def test_a_removed_user_who_comes_back_starts_empty(
    calling: Calling, ada: User, agent: Agent, make_run: MakeRun, way: str
) -> None:
    run, caller = make_run(user_id="cust_1"), calling(ada)
    caller.post(f"runs/{run.pk}/cancel")
    caller.patch("users/cust_1", PROFILE)
    caller.send("DELETE", "users/cust_1")

    if way == "profile":
        assert caller.post("users/", {"user_id": "cust_1", "company": "Contoso"}).status_code == 201
    else:
        caller.post("runs/", {"agent_id": agent.pk, "message": "Go", "user_id": "cust_1"})

    shown = caller.get("users/cust_1").json()
    assert (shown["name"], shown["metadata"]) == (None, {})
    assert shown["company"] == ("Contoso" if way == "profile" else None)


def test_an_operator_keeps_profiles_and_only_an_admin_removes_one(
    calling: Calling, alice: User, vera: User
) -> None:
    caller = calling(alice)
    caller.post("users/", {"user_id": "cust_1"})

    assert caller.send("DELETE", "users/cust_1").status_code == 403
    for method, path in (("POST", "users/"), ("PATCH", "users/cust_1"), ("DELETE", "users/cust_1")):
        assert calling(vera).send(method, path, {"user_id": "x"}).status_code == 403
    assert calling(vera).get("users/cust_1").status_code == 200


def test_another_accounts_users_are_not_there(calling: Calling, alice: User, otto: User) -> None:
    calling(alice).post("users/", {"user_id": "cust_1"})

    assert calling(otto).get("users/cust_1").status_code == 404
    assert calling(otto).patch("users/cust_1", {"name": "X"}).status_code == 404
    assert calling(otto).post("users/", {"user_id": "cust_1"}).status_code == 201
    assert EndUser.objects.count() == 2
    assert not Turn.objects.exists()
