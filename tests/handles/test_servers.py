"""Servers that a program brings along: what is started, with which secrets, and what is refused (design section 2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import HttpServer, MCPTestKit, ModelValidationError, SQLiteExecutionStore, StdioServer
from runs.models import Agent, Server
from tests.handles.conftest import agent, inside
from tests.mcp.bindings import PATIENCE

Parcels = Callable[..., StdioServer]
LABEL = [{"call": "parcels:label", "as": "x"}, {"finish": "{{ x.status }}"}]


def test_env_values_come_from_the_kit_and_from_nowhere_else(
    store: SQLiteExecutionStore, parcels: Parcels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = parcels()
    secret = StdioServer("parcels", known.command, known.args, {"M3_EFFECTS": "env:EFFECTS"})
    monkeypatch.setenv("EFFECTS", str(tmp_path / "wrong"))
    with MCPTestKit(store=store, env={"EFFECTS": str(tmp_path / "effects")}) as kit:
        assert agent(kit, *LABEL).submit("Go", server=secret).result(PATIENCE).output == "done"
    assert (tmp_path / "effects").exists()
    with MCPTestKit(store=store, env={}) as kit, pytest.raises(ModelValidationError, match="EFFECTS"):
        agent(kit, *LABEL).submit("Go", server=secret)
    assert not (tmp_path / "wrong").exists()


def test_neither_command_nor_secrets_of_a_stdio_server_are_stored(
    kit: MCPTestKit, parcels: Parcels, path: Path
) -> None:
    agent(kit, *LABEL).submit("Go", server=parcels()).result(PATIENCE)
    with inside(path):
        server = Server.objects.get()
    assert (server.command, server.args, server.variables) == ("", [], {})
    assert server.entry.startswith("parcels#")


def test_the_same_agent_again_is_one_row_and_another_of_its_name_a_second(
    kit: MCPTestKit, parcels: Parcels, path: Path
) -> None:
    for definition in (LABEL, LABEL, [{"finish": "ok"}]):
        agent(kit, *definition, name="Clerk").submit("Go", server=parcels()).result(PATIENCE)
    with inside(path):
        names = sorted(Agent.objects.values_list("name", flat=True))
    assert len(names) == 2
    assert names[0] == "Clerk"
    assert names[1].startswith("Clerk (")


def test_a_server_that_the_store_has_is_named(kit: MCPTestKit, parcels: Parcels) -> None:
    agent(kit, *LABEL).submit("Go", server=parcels()).result(PATIENCE)
    assert agent(kit, *LABEL).submit("Go", server="parcels").result(PATIENCE).output == "done"
    with pytest.raises(ModelValidationError, match="no server 'post'"):
        agent(kit, {"finish": "ok"}).submit("Go", server="post")


def test_an_http_server_passes_the_egress_guard(kit: MCPTestKit) -> None:
    from runs.errors import EgressRefused

    for url in ("http://127.0.0.1:9/mcp", "https://10.0.0.1/mcp"):
        with pytest.raises(EgressRefused):
            agent(kit, {"finish": "ok"}).submit("Go", server=HttpServer("parcels", url))


def test_headers_may_come_from_the_kits_environment(store: SQLiteExecutionStore, path: Path) -> None:
    server = HttpServer("parcels", "https://1.1.1.1/mcp", {"Authorization": "env:TOKEN"})
    with MCPTestKit(store=store, env={"TOKEN": "Bearer x"}) as kit:
        agent(kit, {"finish": "ok"}).submit("Go", server=server).result(PATIENCE)
    with inside(path):
        assert Server.objects.get().headers == {"Authorization": "Bearer x"}


def test_what_the_agent_cannot_reach_is_refused_before_anything_starts(
    kit: MCPTestKit, parcels: Parcels
) -> None:
    with pytest.raises(ModelValidationError, match="lacks the server parcels"):
        agent(kit, *LABEL).submit("Go")
    with pytest.raises(ModelValidationError, match="local tool weigh"):
        agent(kit, {"call": "local:weigh"}).submit("Go")


@pytest.mark.parametrize(
    "make",
    [
        lambda: StdioServer("", "x"),
        lambda: StdioServer("a", ""),
        lambda: StdioServer("a", "x", "one two"),
        lambda: StdioServer("a", "x", [1]),  # type: ignore[list-item]
        lambda: StdioServer("a", "x", [], {"A": 1}),  # type: ignore[dict-item]
        lambda: HttpServer("a", ""),
    ],
)
def test_a_server_that_cannot_be_meant_is_refused_at_once(make: Callable[[], Any]) -> None:
    with pytest.raises(ModelValidationError):
        make()


@pytest.mark.parametrize(
    "definition",
    [
        {"harness": "codex", "definition": {"steps": []}},
        {"definition": {"steps": [{"juggle": 3}]}},
        {"definition": "steps"},
        {"models": ["x"], "definition": {"steps": [{"finish": "ok"}]}},
        {"harness": "playbook"},
    ],
)
def test_an_agent_with_mistakes_is_refused_at_once(kit: MCPTestKit, definition: dict[str, Any]) -> None:
    with pytest.raises(ModelValidationError):
        kit.agents([definition])


def test_two_servers_of_one_name_are_refused(kit: MCPTestKit, parcels: Parcels) -> None:
    with pytest.raises(ModelValidationError, match="same name"):
        agent(kit, *LABEL).submit("Go", server=[parcels(), parcels("legacy")])
