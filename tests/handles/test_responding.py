"""An answer is checked before anything changes; the same one twice is one (C12-C15, C20, C21, C24, C25, C40)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from runs.handles import (
    ElicitationResponse,
    ExecutionHandle,
    ExecutionOutcome,
    ManagedInputConflict,
    ManagedInputStateError,
    ManagedInputValidationError,
    MCPTestKit,
    StdioServer,
)
from runs.models import Round
from tests.handles.conftest import ADDRESS, agent, inside, pending_of
from tests.mcp.bindings import PATIENCE

OTHER = ElicitationResponse(action="accept", content={"street": "2 Side Street", "city": "Pune"})
DECLINE = ElicitationResponse(action="decline")


@pytest.fixture
def handle(kit: MCPTestKit, parcels: Callable[..., StdioServer]) -> ExecutionHandle:
    started: ExecutionHandle = agent(kit).submit("Book", server=parcels(), human_input="managed")
    return started


@pytest.mark.parametrize(
    ("responses", "key"),
    [
        pytest.param({"shipping_address": ADDRESS}, "", id="no key"),
        pytest.param({}, "k", id="nothing"),
        pytest.param({"address": ADDRESS}, "k", id="another request"),
        pytest.param({"shipping_address": ADDRESS, "more": ADDRESS}, "k", id="one too many"),
        pytest.param({"shipping_address": {"action": "decline"}}, "k", id="a mapping"),
        pytest.param(None, "k", id="no mapping"),
        pytest.param({"shipping_address": ElicitationResponse(action="accept")}, "k", id="no content"),
        pytest.param(
            {"shipping_address": ElicitationResponse(action="accept", content={"street": ""})},
            "k",
            id="schema",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_and_the_round_stays(
    handle: ExecutionHandle, responses: Any, key: str
) -> None:
    round_id = pending_of(handle).round_id
    with pytest.raises(ManagedInputValidationError):
        handle.respond_elicitation(round_id, responses, idempotency_key=key)
    assert pending_of(handle).round_id == round_id
    handle.cancel()


def test_a_round_of_nobody_or_of_another_execution_is_refused(
    handle: ExecutionHandle, kit: MCPTestKit, parcels: Callable[..., StdioServer]
) -> None:
    other = agent(kit).submit("Book too", server=parcels(), human_input="managed")
    for round_id in ("", "0" * 32, pending_of(other).round_id):
        with pytest.raises(ManagedInputValidationError):
            handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k")
    assert pending_of(other)
    handle.cancel()
    other.cancel()


def test_the_same_answer_twice_is_one_and_another_is_a_conflict(
    handle: ExecutionHandle, effects: Callable[[], list[dict[str, Any]]]
) -> None:
    round_id = pending_of(handle).round_id
    for _ in range(2):
        handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k")
    assert handle.result(PATIENCE).output == "Pune"
    handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k")
    for key, response in (("k", OTHER), ("other", ADDRESS)):
        with pytest.raises(ManagedInputConflict):
            handle.respond_elicitation(round_id, {"shipping_address": response}, idempotency_key=key)
    assert len(effects()) == 1


def test_an_answer_after_the_end_is_refused_with_how_it_ended(handle: ExecutionHandle) -> None:
    round_id = pending_of(handle).round_id
    handle.cancel()
    with pytest.raises(ManagedInputStateError) as refusal:
        handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k")
    assert refusal.value.details["outcome"] == "cancelled"


def test_an_answer_after_the_deadline_ends_the_execution_as_timed_out(
    handle: ExecutionHandle, path: Path
) -> None:
    round_id = pending_of(handle).round_id
    with inside(path):
        Round.objects.filter(pk=round_id).update(deadline=timezone.now() - dt.timedelta(seconds=1))
    with pytest.raises(ManagedInputStateError):
        handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k")
    result = handle.result(PATIENCE)
    assert (result.outcome, result.error_code) == (ExecutionOutcome.TIMED_OUT, "timeout")


def test_history_says_that_a_program_answered(handle: ExecutionHandle, path: Path) -> None:
    round_id = pending_of(handle).round_id
    handle.respond_elicitation(round_id, {"shipping_address": DECLINE}, idempotency_key="k")
    handle.result(PATIENCE)
    with inside(path):
        assert Round.objects.get(pk=round_id).decided_via == "python"
