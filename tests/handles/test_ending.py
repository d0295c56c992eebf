"""An execution is ended from any state, and removed once it has ended (C38, C41)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import ExecutionOutcome, MCPTestKit, NotFound, StateConflict, StdioServer
from runs.models import Round, Run
from tests.handles.conftest import agent, answer, inside, pending_of
from tests.mcp.bindings import PATIENCE, wait_for

Parcels = Callable[..., StdioServer]


def test_an_execution_that_waits_for_an_answer_is_cancelled(
    kit: MCPTestKit, parcels: Parcels, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    handle = agent(kit).submit("Book", server=parcels(), human_input="managed")
    pending_of(handle)
    handle.cancel()
    result = handle.result(PATIENCE)
    assert (result.outcome, result.error_code) == (ExecutionOutcome.CANCELLED, "cancelled")
    assert handle.pending_elicitation() is None
    assert effects() == []


def test_an_execution_in_the_middle_of_a_call_is_cancelled(kit: MCPTestKit, parcels: Parcels) -> None:
    handle = agent(kit, {"call": "parcels:hang"}).submit("Hang", server=parcels())
    started = wait_for(lambda: handle.snapshot().started_at, "the start")
    handle.cancel()
    result = handle.result(PATIENCE)
    assert result.outcome is ExecutionOutcome.CANCELLED
    assert handle.snapshot().started_at == started


def test_what_has_ended_keeps_its_result(kit: MCPTestKit) -> None:
    handle = agent(kit, {"finish": "ok"}).submit("Go")
    before = handle.result(PATIENCE)
    handle.cancel()
    assert handle.result() == before


def test_an_unfinished_execution_is_not_deleted(kit: MCPTestKit, parcels: Parcels) -> None:
    handle = agent(kit).submit("Book", server=parcels(), human_input="managed")
    round_id = pending_of(handle).round_id
    with pytest.raises(StateConflict, match="has not ended"):
        handle.delete()
    assert pending_of(handle).round_id == round_id
    handle.cancel()


def test_a_finished_execution_is_deleted_with_its_rounds(
    kit: MCPTestKit, parcels: Parcels, path: Path
) -> None:
    handle = agent(kit).submit("Book", server=parcels(), human_input="managed")
    answer(handle)
    handle.result(PATIENCE)
    handle.delete()
    with inside(path):
        assert not Run.objects.exists()
        assert not Round.objects.exists()
    for look in (handle.snapshot, handle.result, handle.cancel, handle.delete):
        with pytest.raises(NotFound):
            look()
    with pytest.raises(NotFound):
        kit.execution(handle.execution_id)
