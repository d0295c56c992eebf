"""Registering, changing and looking at MCP servers."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from runs import servers, tool_words
from runs.access import Actor, actor_for
from runs.binding import EntryUnavailableError, binding_of
from runs.canonical import digest
from runs.errors import EgressRefused, ModelValidationError, NotAllowed, NotFound, StateConflict
from runs.mcp_client import HttpBinding, Inspection, StdioBinding, ToolDefinition
from runs.models import Agent, Run, Server, Tool, User
from runs.risk import Risk
from runs.servers import ServerValues
from runs.tool_standing import Words

FILES = {
    "files": {
        "command": "mcp-files",
        "args": ["--root", "/srv"],
        "env": {"TOKEN": "env:FILES_TOKEN", "MODE": "safe"},
        "variables": ["FOLDER", "MODE"],
    }
}


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Change what the host allows for one test."""

    def change(**fields: Any) -> None:
        monkeypatch.setattr(settings, "M3", dataclasses.replace(settings.M3, **fields))

    change(stdio_servers=FILES, demo=False, allow_private_urls=False)
    monkeypatch.setenv("FILES_TOKEN", "s3cret")
    return change


@pytest.fixture
def admin(ada: User) -> Actor:
    return actor_for(ada)


def tool(name: str, description: str = "Does it.") -> ToolDefinition:
    return ToolDefinition(
        name=name,
        title=None,
        description=description,
        input_schema={"type": "object"},
        output_schema=None,
        annotations={},
        digest=digest([name, description]),
    )


def found(*tools: ToolDefinition, problems: tuple[str, ...] = ()) -> Inspection:
    return Inspection(
        negotiated={"protocolVersion": "2026-07-28"},
        protocol_version="2026-07-28",
        server_name="Files",
        server_version="1",
        instructions="Read first.",
        tools=tools,
        prompts=(),
        resources=(),
        problems=problems,
    )


def test_an_admin_registers_an_entry_of_the_host_s_list(host: Any, admin: Actor) -> None:
    server = servers.register(admin, ServerValues(name="files", entry="files", variables={"FOLDER": "/data"}))
    assert server.identity.startswith("sha256:")
    assert binding_of(server) == StdioBinding(
        command="mcp-files",
        args=("--root", "/srv"),
        env={"FOLDER": "/data", "TOKEN": "s3cret", "MODE": "safe"},
    )


def test_a_variable_never_overrules_what_the_host_fixed(host: Any, admin: Actor) -> None:
    server = servers.register(admin, ServerValues(name="files", entry="files", variables={"MODE": "wild"}))
    binding = binding_of(server)
    assert isinstance(binding, StdioBinding)
    assert binding.env["MODE"] == "safe"


def test_a_variable_that_the_entry_does_not_list_is_refused(host: Any, admin: Actor) -> None:
    with pytest.raises(ModelValidationError, match="no variable LD_PRELOAD") as refused:
        servers.register(admin, ServerValues(name="files", entry="files", variables={"LD_PRELOAD": "x.so"}))
    assert refused.value.details["fields"][0]["path"] == ["variables"]


def test_a_reference_to_the_host_s_environment_in_a_variable_stays_text(host: Any, admin: Actor) -> None:
    server = servers.register(
        admin, ServerValues(name="files", entry="files", variables={"FOLDER": "env:FILES_TOKEN"})
    )
    binding = binding_of(server)
    assert isinstance(binding, StdioBinding)
    assert binding.env["FOLDER"] == "env:FILES_TOKEN"


def test_an_unset_variable_of_the_host_is_named(
    host: Any, admin: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FILES_TOKEN")
    with pytest.raises(EntryUnavailableError, match="FILES_TOKEN, which is not set"):
        servers.register(admin, ServerValues(name="files", entry="files"))


def test_an_entry_that_the_host_withdrew_cannot_be_bound_any_more(host: Any, admin: Actor) -> None:
    server = servers.register(admin, ServerValues(name="files", entry="files"))
    host(stdio_servers={})
    with pytest.raises(EntryUnavailableError, match="no entry “files” any more"):
        binding_of(server)


def test_an_unknown_entry_is_refused(host: Any, admin: Actor) -> None:
    with pytest.raises(ModelValidationError, match="no entry “shell”"):
        servers.register(admin, ServerValues(name="x", entry="shell"))


def test_a_command_is_refused_outside_demo_mode(host: Any, admin: Actor) -> None:
    with pytest.raises(ModelValidationError, match="choose an entry"):
        servers.register(admin, ServerValues(name="x", command="sh", args=("-c", "id")))


def test_demo_mode_on_loopback_may_hold_a_command(host: Any, admin: Actor) -> None:
    host(demo=True)
    server = servers.register(admin, ServerValues(name="x", command="mcp-x", args=("--fast",)))
    assert binding_of(server) == StdioBinding(command="mcp-x", args=("--fast",))


def test_demo_mode_that_other_hosts_can_reach_may_not_hold_a_command(host: Any, admin: Actor) -> None:
    host(demo=True, allowed_hosts=["127.0.0.1", "m3.example.com"])
    with pytest.raises(ModelValidationError, match="choose an entry"):
        servers.register(admin, ServerValues(name="x", command="mcp-x"))


def test_a_stored_command_is_not_started_once_demo_mode_is_off(host: Any, admin: Actor) -> None:
    host(demo=True)
    server = servers.register(admin, ServerValues(name="x", command="mcp-x"))
    host(demo=False)
    with pytest.raises(EntryUnavailableError, match="demo mode"):
        binding_of(server)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/mcp", "https://10.0.0.1/mcp", "ftp://example.com", "https://a:b@x.de"]
)
def test_a_url_must_pass_the_egress_guard(host: Any, admin: Actor, url: str) -> None:
    with pytest.raises(EgressRefused) as refused:
        servers.register(admin, ServerValues(name="x", url=url))
    assert refused.value.details["fields"][0]["path"] == ["url"]
    assert not Server.objects.exists()


def test_secret_headers_are_stored_encrypted_and_reach_the_binding(host: Any, admin: Actor) -> None:
    host(allow_private_urls=True)
    values = ServerValues(
        name="x", url="http://127.0.0.1:9/mcp", headers={"Authorization": "Bearer topsecret"}
    )
    server = servers.register(admin, values)
    binding = binding_of(server)
    assert isinstance(binding, HttpBinding)
    assert binding.headers == {"Authorization": "Bearer topsecret"}
    stored = Server.objects.raw("SELECT id, CAST(headers AS TEXT) AS secret FROM runs_server")[0]
    assert "topsecret" not in str(getattr(stored, "secret"))  # noqa: B009


def test_headers_are_kept_by_an_update_of_the_same_address_and_forgotten_by_another(
    host: Any, admin: Actor
) -> None:
    host(allow_private_urls=True)
    first = ServerValues(name="x", url="http://127.0.0.1:9/mcp", headers={"Authorization": "a"})
    server = servers.register(admin, first)
    same = servers.update(admin, server.pk, ServerValues(name="x", url="http://127.0.0.1:9/mcp"))
    assert same.headers == {"Authorization": "a"}
    moved = servers.update(admin, server.pk, ServerValues(name="x", url="http://127.0.0.1:10/mcp"))
    assert moved.headers == {}


@pytest.mark.parametrize(
    "headers", [{"Host": "x"}, {"Mcp-Session-Id": "x"}, {"A b": "x"}, {"X": "a\r\nY: b"}]
)
def test_headers_that_break_or_belong_to_the_connection_are_refused(
    host: Any, admin: Actor, headers: dict[str, str]
) -> None:
    host(allow_private_urls=True)
    with pytest.raises(ModelValidationError) as refused:
        servers.register(admin, ServerValues(name="x", url="http://127.0.0.1:9/mcp", headers=headers))
    assert refused.value.details["fields"][0]["path"] == ["headers"]


@pytest.mark.parametrize("name", ["", "a:b", "local", "-x", "x" * 61, "a b", "ä", "x\n"])
def test_a_bad_name_is_refused(host: Any, admin: Actor, name: str) -> None:
    with pytest.raises(ModelValidationError) as refused:
        servers.register(admin, ServerValues(name=name, entry="files"))
    assert refused.value.details["fields"][0]["path"] == ["name"]


def test_a_name_is_taken_once_per_account(host: Any, admin: Actor) -> None:
    servers.register(admin, ServerValues(name="files", entry="files"))
    with pytest.raises(ModelValidationError, match="already"):
        servers.register(admin, ServerValues(name="files", entry="files"))


def test_an_operator_registers_nothing(host: Any, alice: User) -> None:
    with pytest.raises(NotAllowed):
        servers.register(actor_for(alice), ServerValues(name="files", entry="files"))


def test_another_address_forgets_the_saved_handshake(host: Any, admin: Actor) -> None:
    server = servers.register(admin, ServerValues(name="files", entry="files"))
    servers.store_inspection(server, found(tool("read")))
    host(stdio_servers={**FILES, "other": {"command": "other"}})
    changed = servers.update(admin, server.pk, ServerValues(name="files", entry="other"))
    assert changed.negotiated is None
    assert changed.tools.count() == 1


def test_a_server_in_use_by_a_live_run_cannot_be_removed_or_renamed(
    host: Any, admin: Actor, desk: Server, make_run: Callable[..., Run]
) -> None:
    make_run()
    with pytest.raises(StateConflict, match="1 live run uses it"):
        servers.remove(admin, desk.pk)
    with pytest.raises(StateConflict, match="cannot be renamed"):
        servers.update(admin, desk.pk, ServerValues(name="front-desk", entry="files"))


def test_an_unused_server_is_removed_and_the_agent_stays(
    host: Any, admin: Actor, desk: Server, agent: Agent
) -> None:
    assert servers.remove(admin, desk.pk) == "desk"
    assert not Server.objects.exists()
    assert agent.servers.count() == 0


def test_a_server_of_another_account_is_not_there(host: Any, otto: User, desk: Server) -> None:
    otto.memberships.update(role="admin")
    with pytest.raises(NotFound):
        servers.remove(actor_for(otto), desk.pk)


def test_an_inspection_stores_tools_in_order_and_keeps_the_admin_s_word(
    host: Any, admin: Actor, desk: Server
) -> None:
    Tool.objects.all().delete()
    servers.store_inspection(desk, found(tool("b"), tool("a"), problems=("One tool was left out.",)))
    tool_words.say(admin, desk.pk, Tool.objects.get(name="a").pk, Words(risk=Risk.MONEY))
    servers.store_inspection(desk, found(tool("a", "Does more."), tool("c")))
    rows = {row.name: row for row in Tool.objects.all()}
    assert [row.name for row in Tool.objects.filter(present=True)] == ["a", "c"]
    assert rows["a"].risk == Risk.MONEY
    assert rows["a"].changed_at is not None
    assert rows["a"].description == "Does more."
    assert rows["c"].changed_at is None
    assert rows["b"].present is False
    desk.refresh_from_db()
    assert (desk.problems, desk.server_title, desk.protocol_version) == ([], "Files", "2026-07-28")


def test_an_unchanged_tool_keeps_the_time_of_its_last_change(desk: Server) -> None:
    servers.store_inspection(desk, found(tool("a")))
    servers.store_inspection(desk, found(tool("a", "New.")))
    changed = Tool.objects.get(name="a").changed_at
    servers.store_inspection(desk, found(tool("a", "New.")))
    assert Tool.objects.get(name="a").changed_at == changed


def test_five_hundred_tools_are_stored_in_few_statements(
    desk: Server, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    many = [tool(f"tool_{number}") for number in range(500)]
    with django_assert_max_num_queries(30):
        servers.store_inspection(desk, found(*many))
    with django_assert_max_num_queries(20):  # a listing that brings nothing new
        servers.store_inspection(desk, found(*many))
    assert Tool.objects.filter(server=desk, present=True).count() == 500


def test_a_tool_whose_name_is_too_long_to_store_is_left_out_and_said(desk: Server) -> None:
    row = servers.store_inspection(desk, found(tool("x" * 201), tool("ok")))
    assert row.problems == [f"The tool “{'x' * 60}…” was left out: its name is longer than 200 characters."]
    assert Tool.objects.filter(present=True).get().name == "ok"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
async def test_a_look_at_a_real_server_stores_its_tools(host: Any, desk: Server, tmp_path: Path) -> None:
    host(stdio_servers={"desk": {"command": sys.executable, "args": ["-c", LISTING_SERVER]}})
    looked_at = await servers.refresh(desk)
    assert looked_at.last_error == ""
    assert looked_at.listed_at is not None
    assert [row.name async for row in Tool.objects.filter(server=desk, present=True)] == ["greet"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
async def test_a_look_at_a_server_that_ends_says_so_and_keeps_the_tools(host: Any, desk: Server) -> None:
    host(
        stdio_servers={
            "desk": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]}
        }
    )
    looked_at = await servers.refresh(desk)
    assert "ended" in looked_at.last_error or "answer" in looked_at.last_error
    assert await Tool.objects.filter(server=desk, present=True).acount() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
async def test_a_look_at_a_server_that_hangs_ends_in_time(host: Any, desk: Server) -> None:
    hangs = "import sys\nfor line in sys.stdin: pass"
    host(stdio_servers={"desk": {"command": sys.executable, "args": ["-c", hangs]}}, call_timeout_seconds=1.0)
    looked_at = await servers.refresh(desk)
    assert "did not answer within" in looked_at.last_error


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("engine_threads")
async def test_a_look_at_a_withdrawn_entry_starts_nothing(host: Any, desk: Server) -> None:
    host(stdio_servers={})
    looked_at = await servers.refresh(desk)
    assert "no entry “desk” any more" in looked_at.last_error


LISTING_SERVER = """
from mcp.server import MCPServer
server = MCPServer("Greeter")
@server.tool()
def greet(name: str) -> str:
    "Says hello."
    return f"Hello {name}"
server.run("stdio")
"""


def test_trust_is_in_what_stands_at_an_address_and_does_not_move_to_another(host: Any, admin: Actor) -> None:
    host(allow_private_urls=True)
    server = servers.register(admin, ServerValues(name="crm", url="http://127.0.0.1:9/mcp"))
    servers.set_trusted(admin, server.pk, True)
    same = ServerValues(name="crm", url="http://127.0.0.1:9/mcp", trusted=True)
    assert servers.update(admin, server.pk, same).trusted

    assert not servers.update(
        admin, server.pk, dataclasses.replace(same, url="http://127.0.0.1:10/mcp")
    ).trusted
