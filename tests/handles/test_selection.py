"""`tools=[...]` limits an agent and approves what it names, never what is blocked or strict (C48)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import ExecutionOutcome, MCPTestKit, ModelValidationError, StdioServer
from runs.models import Tool
from tests.handles.conftest import agent, inside
from tests.mcp.bindings import PATIENCE

Parcels = Callable[..., StdioServer]
Effects = Callable[[], list[dict[str, Any]]]
LABEL = [{"call": "parcels:label", "as": "x"}, {"finish": "{{ x.status }}: {{ x.error }}"}]


def test_a_selected_tool_needs_no_approval_though_its_mode_would_ask(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    for tools in (["parcels:label"], ["parcels"]):
        handle = agent(kit, *LABEL).submit(
            "Go", server=parcels(), tools=tools, mode="approval", human_input="managed"
        )
        assert handle.result(PATIENCE).output == "done: "
    assert len(effects()) == 2


def test_a_tool_outside_the_selection_is_denied_and_never_called(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    for tools in (["parcels:book"], []):
        output = agent(kit, *LABEL).submit("Go", server=parcels(), tools=tools).result(PATIENCE).output
        assert output is not None
        assert output.startswith("denied: parcels:label is not selected")
    assert effects() == []


def test_a_selection_opens_neither_a_blocked_nor_a_strict_tool(
    kit: MCPTestKit, parcels: Parcels, effects: Effects, path: Path
) -> None:
    def go() -> Any:
        handle = agent(kit, *LABEL).submit("Go", server=parcels(), tools=["parcels:label"])
        return handle.result(PATIENCE)

    go()
    with inside(path):
        Tool.objects.filter(name="label").update(risk="blocked")
    assert "denied" in go().output
    with inside(path):
        Tool.objects.filter(name="label").update(risk="strict")
    strict = go()
    assert (strict.outcome, strict.error_code) == (ExecutionOutcome.FAILED, "human_input_required")
    assert len(effects()) == 1


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param(["parcels:label", "parcels:label"], id="twice"),
        pytest.param(["post:label"], id="unknown server"),
        pytest.param("parcels:label", id="a text"),
        pytest.param([""], id="empty"),
        pytest.param([3], id="a number"),
    ],
)
def test_a_selection_that_cannot_be_meant_is_refused(kit: MCPTestKit, parcels: Parcels, tools: Any) -> None:
    with pytest.raises(ModelValidationError):
        agent(kit, *LABEL).submit("Go", server=parcels(), tools=tools)


def test_in_plan_mode_a_selected_tool_waits_for_the_plan(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    handle = agent(kit, *LABEL).submit(
        "Go", server=parcels(), tools=["parcels:label"], mode="plan", human_input="managed"
    )
    output = handle.result(PATIENCE).output
    assert output is not None
    assert "propose a plan first" in output
    assert effects() == []
