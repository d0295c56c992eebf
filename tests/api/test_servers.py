"""Servers and tools over HTTP: an admin's key registers, tests, changes and removes them; secrets never come back."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from runs.models import Account, Round, Server, Tool, ToolWord, User
from tests.api.conftest import Caller, fields_of
from tests.services.test_servers import LISTING_SERVER

Calling = Callable[[User], Caller]
LISTING = {"command": sys.executable, "args": ["-c", LISTING_SERVER]}
SECRET = "Bearer swordfish"
MASKED = "********"


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**fields: object) -> None:
        monkeypatch.setattr(settings, "M3", dataclasses.replace(settings.M3, **fields))  # type: ignore[arg-type]

    entries = {"desk": {"command": "mcp-desk"}, "files": {"command": "mcp-files", "variables": ["FOLDER"]}}
    change(stdio_servers=entries, demo=False, allow_private_urls=True)
    return change


def made(response: Any) -> dict[str, Any]:
    assert response.status_code == 201, response.content
    return dict(response.json())


def test_an_admin_registers_a_url_with_headers_whose_values_never_come_back(
    calling: Calling, ada: User, account: Account
) -> None:
    caller = calling(ada)
    body = {"name": "crm", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": SECRET}}
    server = made(caller.post("servers/", body))

    assert server["headers"] == {"Authorization": MASKED}
    assert (server["transport"], server["entry"], server["trusted"]) == ("http", None, False)
    for response in (caller.get("servers/"), caller.get(f"servers/{server['id']}")):
        assert "swordfish" not in response.content.decode()
    assert Server.objects.get(account=account, name="crm").headers == {"Authorization": SECRET}


def test_an_admin_registers_an_entry_of_the_host_s_list_with_its_variables(
    calling: Calling, ada: User
) -> None:
    listed = calling(ada).get("servers/entries").json()
    assert listed == [{"name": "desk", "variables": []}, {"name": "files", "variables": ["FOLDER"]}]

    server = made(
        calling(ada).post("servers/", {"name": "f", "entry": "files", "variables": {"FOLDER": "a/b"}})
    )
    assert (server["transport"], server["variables"]) == ("stdio", {"FOLDER": MASKED})
    assert Server.objects.get(pk=server["id"]).variables == {"FOLDER": "a/b"}


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, [["name"]]),
        ({"name": "crm"}, [["url"]]),
        ({"name": "crm", "entry": "desk", "url": "http://127.0.0.1:9/"}, [["url"]]),
        ({"name": "a:b", "entry": "desk"}, [["name"]]),
        ({"name": "local", "entry": "desk"}, [["name"]]),
        ({"name": "crm", "entry": "nothing"}, [["entry"]]),
        ({"name": "crm", "entry": "files", "variables": {"PATH": "/"}}, [["variables"]]),
        ({"name": "crm", "url": "http://127.0.0.1:9/", "headers": {"Host": "x"}}, [["headers"]]),
        ({"name": "crm", "url": "http://127.0.0.1:9/", "headers": {"A": 5}}, [["headers", "A"]]),
        ({"name": "crm", "url": "http://127.0.0.1:9/", "headers": {"A": MASKED}}, [["headers"]]),
        ({"name": "crm", "url": "ftp://example.org/"}, [["url"]]),
        ({"name": "crm", "entry": "desk", "trusted": "yes"}, [["trusted"]]),
    ],
    ids=str,
)
def test_what_is_no_server_is_refused_with_its_field(
    calling: Calling, ada: User, body: dict[str, Any], paths: list[list[str]]
) -> None:
    assert fields_of(calling(ada).post("servers/", body)) == paths
    assert not Server.objects.exists()


def test_a_command_cannot_be_sent(calling: Calling, ada: User, host: Callable[..., None]) -> None:
    host(demo=True, allowed_hosts=["127.0.0.1"])
    body = {"name": "crm", "command": "sh", "args": ["-c", "id"]}
    assert fields_of(calling(ada).post("servers/", body)) == [["url"]]


def test_a_private_address_is_refused_where_the_installation_forbids_it(
    calling: Calling, ada: User, host: Callable[..., None]
) -> None:
    host(allow_private_urls=False)
    response = calling(ada).post("servers/", {"name": "crm", "url": "https://127.0.0.1/mcp"})
    assert fields_of(response) == [["url"]]
    assert response.json()["error"]["error_code"] == "egress_refused"


def test_a_change_keeps_what_it_leaves_out_and_what_is_sent_back_masked(calling: Calling, ada: User) -> None:
    caller = calling(ada)
    url = "http://127.0.0.1:9/mcp"
    headers = {"Authorization": SECRET, "X-Old": "1"}
    at = f"servers/{made(caller.post('servers/', {'name': 'crm', 'url': url, 'headers': headers}))['id']}"

    assert caller.patch(at, {"name": "crm2"}).json()["name"] == "crm2"
    assert Server.objects.get().headers == headers
    changed = caller.patch(at, {"headers": {"Authorization": MASKED, "X-New": "2"}}).json()
    assert changed["headers"] == {"Authorization": MASKED, "X-New": MASKED}
    assert Server.objects.get().headers == {"Authorization": SECRET, "X-New": "2"}
    assert caller.patch(at, {"headers": None}).json()["headers"] == {}
    assert Server.objects.get().url == url


def test_a_secret_does_not_move_to_another_address(calling: Calling, ada: User) -> None:
    caller = calling(ada)
    body = {"name": "crm", "url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": SECRET}}
    at = f"servers/{made(caller.post('servers/', body))['id']}"

    refused = caller.patch(at, {"url": "http://127.0.0.1:8/mcp", "headers": {"Authorization": MASKED}})
    assert fields_of(refused) == [["headers"]]
    assert Server.objects.get().headers == {"Authorization": SECRET}
    assert caller.patch(at, {"url": "http://127.0.0.1:8/mcp"}).json()["headers"] == {}
    assert caller.patch(at, {"entry": "desk"}).json()["transport"] == "stdio"
    assert (Server.objects.get().headers, Server.objects.get().url) == ({}, "")


def test_a_server_is_found_by_its_name_and_removed(calling: Calling, ada: User, desk: Server) -> None:
    caller = calling(ada)
    made(caller.post("servers/", {"name": "crm", "entry": "desk"}))
    assert [row["name"] for row in caller.get("servers/").json()["data"]] == ["crm", "desk"]
    [found] = caller.get("servers/", name="desk").json()["data"]

    assert caller.send("DELETE", f"servers/{found['id']}").status_code == 204
    assert caller.get(f"servers/{found['id']}").status_code == 404


def test_a_server_that_a_live_run_uses_is_not_removed(
    calling: Calling, ada: User, desk: Server, make_round: Callable[..., Round]
) -> None:
    turn = make_round().turn
    turn.bindings = {"desk": {}}
    turn.save(update_fields=["bindings"])
    refused = calling(ada).send("DELETE", f"servers/{desk.pk}")
    assert (refused.status_code, refused.json()["error"]["details"]["runs"]) == (409, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
def test_a_test_lists_the_tools_of_a_real_server(
    calling: Calling, alice: User, desk: Server, host: Callable[..., None]
) -> None:
    host(stdio_servers={"desk": LISTING})
    looked = calling(alice).post(f"servers/{desk.pk}/test")
    assert looked.status_code == 200, looked.content
    assert (looked.json()["ok"], looked.json()["last_error"]) == (True, None)
    assert [tool["full_name"] for tool in looked.json()["tools"]] == ["desk:greet"]

    caller = calling(alice)
    assert [tool["name"] for tool in caller.get(f"servers/{desk.pk}/tools").json()["data"]] == ["greet"]
    every = caller.get(f"servers/{desk.pk}/tools", include_gone="true").json()["data"]
    assert {tool["name"]: tool["present"] for tool in every}["refund"] is False


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
def test_a_test_that_fails_says_why_and_keeps_the_tools(
    calling: Calling, alice: User, desk: Server, host: Callable[..., None]
) -> None:
    host(stdio_servers={"desk": {"command": "/no/such/program"}})
    looked = calling(alice).post(f"servers/{desk.pk}/test").json()
    assert looked["ok"] is False
    assert "no/such/program" in looked["last_error"] or "start" in looked["last_error"]
    assert len(looked["tools"]) == 3


def test_tools_come_in_pages_with_what_counts_and_whose_word_it_is(
    calling: Calling, vera: User, desk: Server
) -> None:
    caller = calling(vera)
    first = caller.get(f"servers/{desk.pk}/tools", limit=2).json()
    rest = caller.get(f"servers/{desk.pk}/tools", starting_after=first["next_starting_after"]).json()

    standing = {
        tool["name"]: (tool["standing"]["risk"], tool["standing"]["risk_by"])
        for tool in first["data"] + rest["data"]
    }
    assert standing == {
        "send_email": ("write", "nobody"),
        "get_customer": ("read", "server"),
        "refund": ("destroy", "server"),
    }
    assert (first["has_more"], rest["has_more"]) == (True, False)


def test_an_admin_s_word_is_stored_shown_and_taken_back(
    calling: Calling, ada: User, desk: Server, make_round: Callable[..., Round]
) -> None:
    tool = Tool.objects.get(name="send_email")
    at, caller, waiting = f"servers/{desk.pk}/tools/{tool.pk}", calling(ada), make_round()

    blocked = caller.patch(at, {"risk": "blocked"}).json()
    assert (blocked["standing"]["risk"], blocked["standing"]["risk_by"]) == ("blocked", "admin")
    assert blocked["word"] == {
        "risk": "blocked",
        "idempotent": None,
        "replay_allowed": False,
        "said_by": "ada",
        "said_at": blocked["word"]["said_at"],
    }
    waiting.refresh_from_db()
    assert (waiting.outcome, waiting.decided_via) == ("superseded", "api")

    caller.patch(at, {"idempotent": True, "replay_allowed": True})
    word = caller.get(at).json()["word"]
    assert (word["risk"], word["idempotent"], word["replay_allowed"]) == ("blocked", True, True)
    assert caller.patch(at, {"risk": None}).json()["standing"]["risk"] == "write"
    assert ToolWord.objects.filter(tool=tool).count() == 3


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"risk": "harmless"}, "risk"),
        ({"idempotent": "yes"}, "idempotent"),
        ({"replay_allowed": None}, "replay_allowed"),
    ],
    ids=str,
)
def test_a_word_that_is_none_is_refused(
    calling: Calling, ada: User, desk: Server, body: dict[str, Any], path: str
) -> None:
    tool = Tool.objects.get(name="refund")
    assert fields_of(calling(ada).patch(f"servers/{desk.pk}/tools/{tool.pk}", body)) == [[path]]


def test_trust_makes_the_server_s_own_word_count(calling: Calling, ada: User, desk: Server) -> None:
    caller = calling(ada)
    assert caller.patch(f"servers/{desk.pk}", {"trusted": False}).json()["trusted"] is False
    tools = caller.get(f"servers/{desk.pk}/tools").json()["data"]
    assert {tool["standing"]["risk"] for tool in tools} == {"write"}


def test_trust_is_given_even_while_the_host_has_no_such_entry(
    calling: Calling, ada: User, desk: Server, host: Callable[..., None]
) -> None:
    host(stdio_servers={})
    assert calling(ada).patch(f"servers/{desk.pk}", {"trusted": False}).status_code == 200


def test_only_admins_change_anything_and_operators_may_test(
    calling: Calling, alice: User, vera: User, desk: Server
) -> None:
    tool = Tool.objects.get(name="refund")
    for path, method in [
        ("servers/", "POST"),
        (f"servers/{desk.pk}", "PATCH"),
        (f"servers/{desk.pk}", "DELETE"),
        (f"servers/{desk.pk}/tools/{tool.pk}", "PATCH"),
        ("servers/entries", "GET"),
    ]:
        assert calling(alice).send(method, path, {}).status_code == 403, path
    assert calling(vera).post(f"servers/{desk.pk}/test").status_code == 403


def test_another_account_s_server_is_not_there(calling: Calling, otto: User, desk: Server) -> None:
    tool, caller = Tool.objects.get(name="refund"), calling(otto)
    for path in (f"servers/{desk.pk}", f"servers/{desk.pk}/tools", f"servers/{desk.pk}/tools/{tool.pk}"):
        assert caller.get(path).status_code == 404, path
    assert caller.post(f"servers/{desk.pk}/test").status_code == 404
    assert caller.get("servers/").json()["data"] == []


def test_a_tool_of_another_server_is_not_there(calling: Calling, ada: User, desk: Server) -> None:
    other = made(calling(ada).post("servers/", {"name": "crm", "entry": "desk"}))
    tool = Tool.objects.get(name="refund")
    assert calling(ada).get(f"servers/{other['id']}/tools/{tool.pk}").status_code == 404
