"""Servers on their pages: health, tools with their risk, the form, and the look at a server."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from runs.models import Run, Server, Tool, User
from tests.services.test_servers import LISTING_SERVER

ClientFor = Callable[[User], Client]
ENTRIES = {"desk": {"command": "mcp-desk", "variables": ["FOLDER"]}}


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**fields: object) -> None:
        monkeypatch.setattr(settings, "M3", dataclasses.replace(settings.M3, **fields))  # type: ignore[arg-type]

    change(stdio_servers=ENTRIES, demo=False, allow_private_urls=True)
    return change


def test_the_list_tells_health_tools_and_address(desk: Server, vera: User, client_for: ClientFor) -> None:
    page = client_for(vera).get("/servers").content.decode()
    assert "Not tested" in page
    assert "3 tools" in page
    assert "stdio entry desk" in page
    Server.objects.update(last_error="The server did not answer.", listed_at=timezone.now())
    assert "Not reachable" in client_for(vera).get("/servers").content.decode()


def test_a_server_shows_its_tools_with_their_risk(desk: Server, alice: User, client_for: ClientFor) -> None:
    page = client_for(alice).get(f"/servers/{desk.pk}").content.decode()
    for words in ("send_email", "Write", "get_customer", "Read", "refund", "Destroy"):
        assert words in page
    assert "Change what counts" not in page


def test_without_trust_a_server_s_word_does_not_count(
    desk: Server, alice: User, client_for: ClientFor
) -> None:
    Server.objects.update(trusted=False)
    page = client_for(alice).get(f"/servers/{desk.pk}").content.decode()
    assert page.count('<span class="tag write">') == 3
    assert "says it destroys" in page


def test_an_admin_sets_and_takes_back_a_risk(desk: Server, ada: User, client_for: ClientFor) -> None:
    client, tool = client_for(ada), Tool.objects.get(name="send_email")
    page = client.post(
        f"/servers/{desk.pk}/tools/{tool.pk}/words", {"risk": "money"}, follow=True
    ).content.decode()
    assert '<span class="tag money">Money</span>' in page
    client.post(f"/servers/{desk.pk}/tools/{tool.pk}/words", {"risk": ""})
    tool.refresh_from_db()
    assert tool.risk is None
    assert client.post(f"/servers/{desk.pk}/tools/{tool.pk}/words", {"risk": "fun"}).status_code == 422


def test_an_admin_trusts_a_server_and_takes_it_back(
    desk: Server, ada: User, alice: User, client_for: ClientFor
) -> None:
    client = client_for(ada)
    client.post(f"/servers/{desk.pk}/trust")
    assert not Server.objects.get().trusted
    client.post(f"/servers/{desk.pk}/trust", {"trusted": "on"})
    assert Server.objects.get().trusted
    assert client_for(alice).post(f"/servers/{desk.pk}/trust").status_code == 403


def test_a_description_is_text_with_hidden_characters_written_out(
    desk: Server, alice: User, client_for: ClientFor
) -> None:
    Tool.objects.filter(name="send_email").update(description="<a href='//evil'>click</a>\u202e")
    page = client_for(alice).get(f"/servers/{desk.pk}").content.decode()
    assert "<a href='//evil'>" not in page
    assert "&lt;/a&gt;⟨U+202E⟩" in page


def test_five_hundred_tools_are_listed_with_few_queries(
    desk: Server, ada: User, client_for: ClientFor, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    Tool.objects.bulk_create(
        Tool(server=desk, name=f"tool_{number}", digest="sha256:x", position=number) for number in range(500)
    )
    client = client_for(ada)
    with django_assert_max_num_queries(20):  # type: ignore[attr-defined]
        page = client.get(f"/servers/{desk.pk}").content.decode()
    assert "503 tools" in page
    assert "tool_499" in page


def test_an_admin_adds_a_server_of_the_host_s_list(account: object, ada: User, client_for: ClientFor) -> None:
    response = client_for(ada).post(
        "/servers/new", {"name": "front", "kind": "entry", "entry": "desk", "variables": "FOLDER=/data"}
    )
    server = Server.objects.get()
    assert response["Location"] == f"/servers/{server.pk}"
    assert (server.entry, server.variables) == ("desk", {"FOLDER": "/data"})


def test_secret_headers_are_never_shown_again(account: object, ada: User, client_for: ClientFor) -> None:
    client = client_for(ada)
    client.post(
        "/servers/new",
        {
            "name": "web",
            "kind": "url",
            "url": "http://127.0.0.1:9/mcp",
            "headers": "Authorization: Bearer topsecret",
        },
    )
    server = Server.objects.get()
    for path in (f"/servers/{server.pk}", f"/servers/{server.pk}/edit"):
        page = client.get(path).content.decode()
        assert "Authorization" in page
        assert "topsecret" not in page
    client.post(
        f"/servers/{server.pk}/edit", {"name": "web2", "kind": "url", "url": "http://127.0.0.1:9/mcp"}
    )
    server.refresh_from_db()
    assert server.headers == {"Authorization": "Bearer topsecret"}
    client.post(
        f"/servers/{server.pk}/edit",
        {"name": "web2", "kind": "url", "url": "http://127.0.0.1:9/mcp", "forget": "on"},
    )
    server.refresh_from_db()
    assert server.headers == {}


@pytest.mark.parametrize(
    ("fields", "anchor"),
    [
        ({"name": "a:b", "kind": "entry", "entry": "desk"}, "id_name"),
        ({"name": "a", "kind": "url", "url": "http://169.254.169.254/"}, "id_url"),
        ({"name": "a", "kind": "url", "url": "http://127.0.0.1:9/", "headers": "no colon"}, "id_headers"),
        ({"name": "a", "kind": "entry", "entry": ""}, "id_entry"),
    ],
)
def test_a_refused_server_says_why_beside_the_field(
    account: object, ada: User, client_for: ClientFor, fields: dict[str, str], anchor: str
) -> None:
    response = client_for(ada).post("/servers/new", fields)
    page = response.content.decode()
    assert response.status_code == 422
    assert f'href="#{anchor}"' in page
    assert f'value="{fields["name"]}"' in page
    assert not Server.objects.exists()


def test_a_command_can_be_typed_in_demo_mode_alone(
    account: object, ada: User, client_for: ClientFor, host: Callable[..., None]
) -> None:
    typed = {"name": "mine", "kind": "command", "command": "mcp-mine --root '/a b'"}
    assert client_for(ada).post("/servers/new", typed).status_code == 422
    assert not Server.objects.exists()
    host(demo=True)
    assert client_for(ada).post("/servers/new", typed).status_code == 302
    server = Server.objects.get()
    assert (server.command, server.args) == ("mcp-mine", ["--root", "/a b"])


def test_a_used_server_is_not_removed_and_the_page_says_why(
    desk: Server, make_run: Callable[..., Run], ada: User, client_for: ClientFor
) -> None:
    make_run()
    client = client_for(ada)
    assert "1 live run uses it" in client.get(f"/servers/{desk.pk}/remove").content.decode()
    assert client.post(f"/servers/{desk.pk}/remove").status_code == 409
    assert Server.objects.exists()


def test_an_unused_server_is_removed_after_a_confirmation(
    desk: Server, ada: User, client_for: ClientFor
) -> None:
    client = client_for(ada)
    assert "Remove desk?" in client.get(f"/servers/{desk.pk}/remove").content.decode()
    client.post(f"/servers/{desk.pk}/remove")
    assert not Server.objects.exists()


def test_only_admins_change_servers(desk: Server, alice: User, client_for: ClientFor) -> None:
    client, tool = client_for(alice), Tool.objects.get(name="send_email")
    for path in ("/servers/new", f"/servers/{desk.pk}/edit", f"/servers/{desk.pk}/remove"):
        assert client.post(path, {}).status_code == 403
    assert client.post(f"/servers/{desk.pk}/tools/{tool.pk}/words", {"risk": "read"}).status_code == 403


def test_a_viewer_does_not_test_connections(desk: Server, vera: User, client_for: ClientFor) -> None:
    assert client_for(vera).post(f"/servers/{desk.pk}/test").status_code == 403


def test_another_account_s_server_is_not_there(desk: Server, otto: User, client_for: ClientFor) -> None:
    client = client_for(otto)
    assert client.get(f"/servers/{desk.pk}").status_code == 404
    assert client.post(f"/servers/{desk.pk}/test").status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
def test_a_look_lists_the_tools_of_a_real_server(
    desk: Server, alice: User, client_for: ClientFor, host: Callable[..., None]
) -> None:
    host(stdio_servers={"desk": {"command": sys.executable, "args": ["-c", LISTING_SERVER]}})
    client = client_for(alice)
    page = client.post(f"/servers/{desk.pk}/test", follow=True).content.decode()
    assert "Reachable" in page
    assert "greet" in page
    assert "3 tools it no longer lists" in page
    fragment = client.post(f"/servers/{desk.pk}/test", headers={"HX-Request": "true"}).content.decode()
    assert 'id="looked-at"' in fragment
    assert "desk is reachable and lists 1 tool." in fragment
    assert "<html" not in fragment


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
def test_a_look_that_fails_says_why_and_keeps_the_tools(
    desk: Server, alice: User, client_for: ClientFor, host: Callable[..., None]
) -> None:
    host(stdio_servers={"desk": {"command": "/no/such/program"}})
    page = client_for(alice).post(f"/servers/{desk.pk}/test", follow=True).content.decode()
    assert "The last look failed." in page
    assert "The tools below are those of the last good one." in page
    assert "send_email" in page
