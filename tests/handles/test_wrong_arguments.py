"""A wrong argument is refused with a sentence of ours, whatever it is (C1, C48)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.handles import (
    AgentSpec,
    HttpServer,
    ManagedInputValidationError,
    MCPTestKit,
    ModelValidationError,
    StdioServer,
)

PLAYBOOK = {"steps": [{"finish": "done"}]}
HALF = "half \ud800"


def spec(**given: Any) -> AgentSpec:
    return AgentSpec(**{"prompt": "Go", "definition": PLAYBOOK, **given})


WRONG: dict[str, Callable[[], Any]] = {
    "half a surrogate in the prompt": lambda: spec(prompt=HALF),
    "NUL in the prompt": lambda: spec(prompt="a\0b"),
    "a prompt that is no text": lambda: spec(prompt=3),
    "a number for a user": lambda: spec(user_id=3),
    "half a surrogate in the user": lambda: spec(user_id=HALF),
    "a number for a mode": lambda: spec(mode=3),
    "a number for tools": lambda: spec(tools=3),
    "half a surrogate in tools": lambda: spec(tools=[HALF]),
    "a mapping for tools": lambda: spec(tools={"parcels": True}),
    "no elicitations": lambda: spec(elicitations=None),
    "no servers": lambda: spec(servers=None),
    "a number for servers": lambda: spec(servers=3),
    "a name that is no text": lambda: spec(name=3),
    "instructions that are no text": lambda: spec(instructions=None),
    "half a surrogate in the instructions": lambda: spec(instructions=HALF),
    "a harness that is no text": lambda: spec(harness=[]),
    "a file for a URL": lambda: HttpServer(name="files", url="file:///etc/passwd"),
    "another scheme": lambda: HttpServer(name="files", url="ftp://parcels.example"),
    "a URL without a host": lambda: HttpServer(name="files", url="http://"),
    "a URL with half a bracket": lambda: HttpServer(name="files", url="http://[::1"),
    "arguments that are no list": lambda: StdioServer(name="files", command="x", args=3),  # type: ignore[arg-type]
    "a number for a folder": lambda: StdioServer(name="files", command="x", cwd=3),  # type: ignore[arg-type]
    "a kit with no servers": lambda: MCPTestKit(servers=None),  # type: ignore[arg-type]
    "a kit with a number for its environment": lambda: MCPTestKit(env=3),  # type: ignore[arg-type]
    "a kit with a number in its environment": lambda: MCPTestKit(env={"A": 1}),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_value_that_cannot_be_meant_is_refused_as_soon_as_it_is_made(wrong: str) -> None:
    with pytest.raises(ModelValidationError) as refused:
        WRONG[wrong]()
    assert refused.value.message.endswith(".")


@pytest.fixture
def agent(kit: MCPTestKit) -> Any:
    return kit.agents([{"definition": PLAYBOOK}])[0]


@pytest.mark.parametrize("given", [None, 3, "text", {"definition": PLAYBOOK}, [3], [{1: 2}]])
def test_agents_are_a_list_of_mappings(kit: MCPTestKit, given: Any) -> None:
    with pytest.raises(ModelValidationError):
        kit.agents(given)


@pytest.mark.parametrize("field", ["name", "instructions", "harness", "definition"])
def test_what_an_agent_is_made_of_is_checked_before_its_first_message(kit: MCPTestKit, field: str) -> None:
    for value in (3, None, HALF):
        with pytest.raises(ModelValidationError):
            kit.agents([{"definition": PLAYBOOK, field: value}])


@pytest.mark.parametrize(
    "given", [{"server": None}, {"server": 3}, {"tools": 3}, {"user_id": 3}, {"elicitations": None}]
)
def test_a_submission_is_refused_like_its_spec(agent: Any, given: dict[str, Any]) -> None:
    with pytest.raises(ModelValidationError):
        agent.submit("Go", **given)


def test_a_time_that_no_clock_counts_is_refused(agent: Any) -> None:
    handle = agent.submit("Go")
    with pytest.raises(ModelValidationError, match="timeout"):
        handle.result(timeout=10**400)


def test_an_idempotency_key_is_bounded(agent: Any) -> None:
    handle = agent.submit("Go", human_input="managed")
    with pytest.raises(ManagedInputValidationError, match="200"):
        handle.respond_elicitation("round", {}, idempotency_key="k" * 201)
