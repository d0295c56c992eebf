"""Whether an execution may wait for people is said at its submission, and nothing unclear is accepted (C1-C6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import (
    AgentSpec,
    AsyncMCPTestKit,
    ElicitationResponse,
    ExecutionOutcome,
    MCPTestKit,
    ModelValidationError,
    PlannedElicitation,
    SQLiteExecutionStore,
    StdioServer,
)
from tests.handles.conftest import ADDRESS, agent
from tests.mcp.bindings import PATIENCE

SPEC = AgentSpec(prompt="Hello", definition={"steps": [{"finish": "ok"}]})


@pytest.mark.parametrize("word", [None, True, False, "Managed", "", 1, ["managed"]])
def test_another_word_than_fail_or_managed_is_refused(kit: MCPTestKit, word: Any) -> None:
    with pytest.raises(ModelValidationError, match="human_input"):
        kit.submit(SPEC, word)
    with pytest.raises(ModelValidationError, match="human_input"):
        agent(kit).submit("Hello", human_input=word)


def test_the_awaitable_kit_takes_it_by_keyword_only_and_refuses_the_same(path: Path) -> None:
    async def program() -> None:
        store = SQLiteExecutionStore(path)
        async with AsyncMCPTestKit(store=store) as kit:
            with pytest.raises(TypeError):
                await kit.submit(SPEC, "managed")  # type: ignore[call-arg]
            with pytest.raises(ModelValidationError, match="human_input"):
                await kit.submit(SPEC, human_input=None)  # type: ignore[arg-type]
            assert (await (await kit.submit(SPEC)).result(PATIENCE)).output == "ok"
        store.close()

    asyncio.run(program())


@pytest.mark.parametrize("human_input", ["fail", "managed"])
def test_only_an_agent_spec_can_be_submitted(kit: MCPTestKit, human_input: Any) -> None:
    with pytest.raises(ModelValidationError, match="AgentSpec"):
        kit.submit({"tool": "parcels:book"}, human_input)  # type: ignore[arg-type]


def test_people_and_predefined_answers_exclude_each_other(kit: MCPTestKit) -> None:
    planned = [PlannedElicitation(response=ADDRESS)]
    with pytest.raises(ModelValidationError, match="Predefined answers"):
        agent(kit).submit("Book", elicitations=planned, human_input="managed")


def test_without_a_store_that_lasts_nobody_can_be_waited_for() -> None:
    with MCPTestKit() as kit:
        with pytest.raises(ModelValidationError, match="SQLiteExecutionStore"):
            kit.submit(SPEC, "managed")
        assert kit.submit(SPEC).result(PATIENCE).output == "ok"


def test_by_default_a_server_that_asks_ends_the_execution_and_nobody_can_answer(
    kit: MCPTestKit, parcels: Callable[..., StdioServer], effects: Callable[[], list[dict[str, Any]]]
) -> None:
    handle = agent(kit).submit("Book", server=parcels())
    result = handle.result(PATIENCE)
    assert (result.outcome, result.error_code) == (ExecutionOutcome.FAILED, "human_input_required")
    assert handle.pending_elicitation() is None
    assert handle.pending_rounds() == ()
    with pytest.raises(ModelValidationError, match="asks nobody"):
        handle.respond_elicitation(
            "", {"shipping_address": ElicitationResponse(action="decline")}, idempotency_key=""
        )
    assert effects() == []


def test_the_word_is_kept_with_the_execution(kit: MCPTestKit, parcels: Callable[..., StdioServer]) -> None:
    asked = agent(kit).submit("Book", server=parcels(), human_input="managed")
    silent = kit.submit(SPEC)
    with pytest.raises(ModelValidationError, match="asks nobody"):
        kit.execution(silent.execution_id).respond_elicitation("r", {}, idempotency_key="k")
    assert kit.execution(asked.execution_id).pending_rounds() is not None
    asked.cancel()
