"""Submit, see what is asked, answer, read the result; blocking and awaitable (C27, C39, C49)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs.handles import (
    AgentSpec,
    AsyncMCPTestKit,
    ElicitationResponse,
    ExecutionOutcome,
    ExecutionStatus,
    MCPTestKit,
    SQLiteExecutionStore,
    StdioServer,
)
from tests.handles.conftest import ADDRESS, BOOK, agent, answer, pending_of
from tests.mcp.bindings import PATIENCE

Effects = Callable[[], list[dict[str, Any]]]
Parcels = Callable[..., StdioServer]


def test_a_program_answers_what_a_server_asks_and_the_call_goes_on_once(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    handle = agent(kit).submit("Book it", server=parcels(), tools=["parcels:book"], human_input="managed")
    pending = pending_of(handle)
    assert handle.snapshot().lifecycle is ExecutionStatus.WAITING_FOR_INPUT
    assert (pending.execution_id, pending.server, pending.operation_name) == (
        handle.execution_id,
        "parcels",
        "book",
    )
    assert list(pending.requests) == ["shipping_address"]
    answer(handle)
    result = handle.result(timeout=PATIENCE)
    assert (result.outcome, result.output) == (ExecutionOutcome.COMPLETED, "Pune")
    assert handle.pending_elicitation() is None
    assert [call.target for call in result.calls] == ["parcels:book"]
    assert [effect["what"] for effect in effects()] == ["book"]


def test_a_prompt_on_an_open_session_is_answered_the_same_way(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    steps = [{"call": "parcels:book", "as": "b"}, {"finish": "{{ b.result.given.shipping_address.city }}"}]
    handle = agent(kit, *steps).submit("Book it", server=parcels("legacy"), human_input="managed")
    assert list(pending_of(handle).requests) == ["elicitation"]
    answer(handle, elicitation=ADDRESS)
    assert handle.result(timeout=PATIENCE).output == "Pune"
    assert len(effects()) == 1


def test_the_awaitable_kit_does_the_same(path: Path, parcels: Parcels, effects: Effects) -> None:
    async def program() -> str | None:
        store = SQLiteExecutionStore(path)
        try:
            async with AsyncMCPTestKit(store=store, env={}) as kit:
                spec = AgentSpec(prompt="Book it", definition={"steps": BOOK}, servers=[parcels()])
                handle = await kit.submit(spec, human_input="managed")
                while (pending := await handle.pending_elicitation()) is None:
                    assert (await handle.snapshot()).outcome is None
                    await asyncio.sleep(0.02)
                again = await kit.execution(handle.execution_id)
                await again.respond_elicitation(
                    pending.round_id, {"shipping_address": ADDRESS}, idempotency_key="one"
                )
                return (await handle.result(timeout=PATIENCE)).output
        finally:
            store.close()

    assert asyncio.run(asyncio.wait_for(program(), 2 * PATIENCE)) == "Pune"
    assert len(effects()) == 1


def test_cancelling_one_request_answers_it_and_cancels_no_execution(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    handle = agent(kit).submit("Book it", server=parcels(), human_input="managed")
    answer(handle, shipping_address=ElicitationResponse(action="cancel"))
    result = handle.result(timeout=PATIENCE)
    assert result.outcome is ExecutionOutcome.COMPLETED
    assert result.calls[0].result["done"] is False
    assert effects() == []


def test_a_kit_starts_and_ends_without_a_with_statement(parcels: Parcels, effects: Effects) -> None:
    kit = MCPTestKit(env={})
    try:
        handle = agent(kit, {"call": "parcels:label"}, {"finish": "ok"}).submit("Label", server=parcels())
        assert handle.result(timeout=PATIENCE).output == "ok"
    finally:
        kit.close()
    kit.close()
    assert len(effects()) == 1
