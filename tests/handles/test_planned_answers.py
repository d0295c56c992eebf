"""Answers given in advance: matched, used once, kept over a restart, and reported when nothing asked for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import (
    ElicitationResponse,
    ExecutionOutcome,
    MCPTestKit,
    ModelValidationError,
    PlannedElicitation,
    SQLiteExecutionStore,
    StdioServer,
    schema_digest,
)
from runs.models import Round
from tests.handles.conftest import ADDRESS, agent, inside
from tests.mcp.bindings import PATIENCE
from tests.servers import parcels as service

Parcels = Callable[..., StdioServer]
Effects = Callable[[], list[dict[str, Any]]]
UNUSED = PlannedElicitation(response=ADDRESS, message="Something else")


@pytest.mark.parametrize(
    "match",
    [
        pytest.param({}, id="anything"),
        pytest.param({"message": "Where should the parcel go?"}, id="text"),
        pytest.param({"message": "Where*"}, id="glob"),
        pytest.param({"schema_digest": schema_digest(service.ADDRESS)}, id="schema"),
        pytest.param({"server": "parcels", "operation": "book", "key": "shipping_address"}, id="operation"),
    ],
)
def test_a_request_that_fits_is_answered_without_anybody(
    kit: MCPTestKit, parcels: Parcels, effects: Effects, match: dict[str, str]
) -> None:
    plan = [UNUSED, PlannedElicitation(response=ADDRESS, **match)]
    handle = agent(kit).submit("Book", server=parcels(), elicitations=plan)
    result = handle.result(PATIENCE)
    assert (result.outcome, result.output) == (ExecutionOutcome.COMPLETED, "Pune")
    assert result.unused_elicitations == (UNUSED,)
    assert len(effects()) == 1


def test_a_prompt_on_an_open_session_is_answered_too(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    plan = [PlannedElicitation(response=ADDRESS, message="Where*")]
    result = agent(kit).submit("Book", server=parcels("legacy"), elicitations=plan).result(PATIENCE)
    assert (result.output, result.unused_elicitations) == ("Pune", ())
    assert len(effects()) == 1


def test_every_request_of_a_round_takes_an_answer_of_its_own(kit: MCPTestKit, parcels: Parcels) -> None:
    steps = [{"call": "parcels:insure", "as": "i"}, {"finish": "{{ i.result.given.cover.level }}"}]
    plan = [
        PlannedElicitation(response=ElicitationResponse(action="accept"), key="terms"),
        PlannedElicitation(response=ElicitationResponse(action="accept", content={"level": "full"})),
    ]
    result = agent(kit, *steps).submit("Insure", server=parcels(), elicitations=plan).result(PATIENCE)
    assert (result.output, result.unused_elicitations) == ("full", ())


@pytest.mark.parametrize("generation", ["modern", "legacy"])
def test_what_no_answer_fits_ends_the_execution_with_the_question(
    kit: MCPTestKit, parcels: Parcels, effects: Effects, generation: str
) -> None:
    result = agent(kit).submit("Book", server=parcels(generation), elicitations=[UNUSED]).result(PATIENCE)
    assert (result.outcome, result.error_code) == (ExecutionOutcome.FAILED, "human_input_required")
    assert result.error is not None
    assert "Where should the parcel go?" in result.error
    assert result.unused_elicitations == (UNUSED,)
    assert effects() == []


def test_an_answer_that_was_used_is_not_used_again(
    kit: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    steps = [{"call": "parcels:book", "as": "a"}, {"call": "parcels:book", "as": "b"}]
    plan = [PlannedElicitation(response=ADDRESS)]
    result = agent(kit, *steps).submit("Book", server=parcels(), elicitations=plan).result(PATIENCE)
    assert result.error_code == "human_input_required"
    assert len(effects()) == 1


@pytest.mark.parametrize("generation", ["modern", "legacy"])
def test_an_answer_that_does_not_fit_its_form_is_told_as_such(
    kit: MCPTestKit, parcels: Parcels, effects: Effects, generation: str
) -> None:
    plan = [PlannedElicitation(response=ElicitationResponse(action="accept", content={"street": "x"}))]
    result = agent(kit).submit("Book", server=parcels(generation), elicitations=plan).result(PATIENCE)
    assert result.error is not None
    assert "cannot be used" in result.error
    assert result.unused_elicitations == tuple(plan)
    assert effects() == []


def test_history_says_that_the_plan_answered(kit: MCPTestKit, parcels: Parcels, path: Path) -> None:
    plan = [PlannedElicitation(response=ElicitationResponse(action="decline"))]
    agent(kit).submit("Book", server=parcels(), elicitations=plan).result(PATIENCE)
    with inside(path):
        assert list(Round.objects.values_list("decided_via", "outcome")) == [("plan", "answered")]


def test_the_plan_survives_the_program(path: Path, parcels: Parcels, effects: Effects) -> None:
    steps: list[dict[str, Any]] = [
        {"sleep": 1.0},
        {"call": "parcels:book", "as": "b"},
        {"finish": "{{ b.status }}"},
    ]
    plan = [PlannedElicitation(response=ADDRESS), UNUSED]
    first = SQLiteExecutionStore(path)
    with MCPTestKit(store=first, env={}) as kit:
        handle = agent(kit, *steps).submit("Book", server=parcels(), elicitations=plan)
    first.close()
    second = SQLiteExecutionStore(path)
    with MCPTestKit(store=second, env={}, servers=[parcels()]) as kit:
        result = kit.execution(handle.execution_id).result(PATIENCE)
    second.close()
    assert (result.output, result.unused_elicitations) == ("done", (UNUSED,))
    assert len(effects()) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlannedElicitation(response={"action": "decline"}),  # type: ignore[arg-type]
        lambda: PlannedElicitation(response=ADDRESS, message=""),
        lambda: PlannedElicitation(response=ADDRESS, server=3),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_answer_in_advance_is_refused_at_once(make: Callable[[], Any]) -> None:
    with pytest.raises(ModelValidationError):
        make()


def test_a_plan_is_a_list_of_answers(kit: MCPTestKit) -> None:
    for plan in ([ADDRESS], [{"response": ADDRESS}], [PlannedElicitation(response=ADDRESS)] * 101):
        with pytest.raises(ModelValidationError):
            agent(kit, {"finish": "ok"}).submit("Go", elicitations=plan)
