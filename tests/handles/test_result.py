"""Waiting for the end: bounded if wanted, never harmful, always the same answer (C43)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from runs.handles import (
    ExecutionOutcome,
    ExecutionStatus,
    MCPTestKit,
    ModelValidationError,
    NotFound,
    OperationTimeout,
)
from tests.handles.conftest import agent
from tests.mcp.bindings import PATIENCE


@pytest.mark.parametrize("timeout", [0, -1, 0.0, float("nan"), True, "1"])
def test_a_timeout_that_is_not_above_zero_is_refused(kit: MCPTestKit, timeout: Any) -> None:
    handle = agent(kit, {"finish": "ok"}).submit("Go")
    with pytest.raises(ModelValidationError, match="timeout"):
        handle.result(timeout=timeout)


def test_a_wait_that_is_over_leaves_the_execution_alive(kit: MCPTestKit) -> None:
    handle = agent(kit, {"sleep": 1.0}, {"finish": "ok"}).submit("Sleep")
    with pytest.raises(OperationTimeout):
        handle.result(timeout=0.05)
    assert handle.snapshot().outcome is None
    assert handle.result(timeout=PATIENCE).output == "ok"


def test_every_later_call_gives_the_same_result(kit: MCPTestKit) -> None:
    handle = agent(kit, {"finish": "ok"}).submit("Go")
    first = handle.result(PATIENCE)
    assert handle.result(0.001) == first
    assert kit.execution(handle.execution_id).result() == first
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.output = "else"


def test_a_failed_execution_has_a_result_too(kit: MCPTestKit) -> None:
    handle = agent(kit, {"fail": "No stock."}).submit("Go")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.error) == (ExecutionOutcome.FAILED, "No stock.")
    state = handle.snapshot()
    assert state.lifecycle is ExecutionStatus.FINISHED
    assert (state.outcome, state.finished_at) == (result.outcome, result.finished_at)


@pytest.mark.parametrize("execution_id", ["", "x", "0" * 32, "00000000-0000-0000-0000-000000000000", None])
def test_an_execution_that_is_not_there_is_not_found(kit: MCPTestKit, execution_id: Any) -> None:
    with pytest.raises(NotFound):
        kit.execution(execution_id)
