"""What waits for an answer, and of which kind it is (C7, C8)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import (
    ElicitationResponse,
    ExecutionHandle,
    ManagedInputStateError,
    ManagedInputValidationError,
    MCPTestKit,
    PendingRound,
    StdioServer,
    UrlElicitationRequest,
)
from runs.models import Tool
from runs.round_states import RoundKind
from tests.handles.conftest import ADDRESS, agent, answer, inside, pending_of
from tests.mcp.bindings import PATIENCE, wait_for

Parcels = Callable[..., StdioServer]
TWICE = {"parallel": [{"call": "parcels:book", "as": "a"}, {"call": "parcels:book", "as": "b"}]}


def rounds_of(handle: ExecutionHandle, count: int = 1) -> tuple[PendingRound, ...]:
    return wait_for(  # type: ignore[no-any-return]
        lambda: found if len(found := handle.pending_rounds()) >= count else None, f"{count} pending rounds"
    )


def test_two_pending_elicitations_are_an_error_and_can_be_answered_one_by_one(
    kit: MCPTestKit, parcels: Parcels
) -> None:
    handle = agent(kit, TWICE, {"finish": "both"}).submit("Book", server=parcels(), human_input="managed")
    first, second = rounds_of(handle, 2)
    with pytest.raises(ManagedInputStateError) as refusal:
        handle.pending_elicitation()
    assert set(refusal.value.details["round_ids"]) == {first.round_id, second.round_id}
    handle.respond_elicitation(first.round_id, {"shipping_address": ADDRESS}, idempotency_key="1")
    assert pending_of(handle).round_id == second.round_id
    answer(handle)
    assert handle.result(PATIENCE).output == "both"


def test_what_is_shown_holds_no_lease(kit: MCPTestKit, parcels: Parcels) -> None:
    handle = agent(kit).submit("Book", server=parcels(), human_input="managed")
    shown = pending_of(handle).model_dump()
    assert shown["request_state"] == "draft"
    assert not {name for name in shown if "lease" in name or "token" in name or "owner" in name}
    handle.cancel()


def test_a_page_to_agree_to_stands_beside_a_form_in_one_round(kit: MCPTestKit, parcels: Parcels) -> None:
    steps = [{"call": "parcels:insure", "as": "i"}, {"finish": "{{ i.result.given.cover.level }}"}]
    handle = agent(kit, *steps).submit("Insure", server=parcels(), human_input="managed")
    requests = pending_of(handle).requests
    assert set(requests) == {"cover", "terms"}
    assert isinstance(requests["terms"], UrlElicitationRequest)
    cover = ElicitationResponse(action="accept", content={"level": "full"})
    answer(handle, cover=cover, terms=ElicitationResponse(action="accept"))
    assert handle.result(PATIENCE).output == "full"


def test_questions_of_the_agent_are_pauses_but_no_elicitations(kit: MCPTestKit) -> None:
    question = {"question": "Which?", "header": "Which", "options": [{"label": "a"}, {"label": "b"}]}
    steps: list[dict[str, Any]] = [
        {"ask": {"questions": [question]}, "as": "q"},
        {"finish": '{{ q.answers."Which?" }}'},
    ]
    handle = agent(kit, *steps).submit("Ask", human_input="managed")
    (asked,) = rounds_of(handle)
    assert (asked.kind, asked.operation_name) == (RoundKind.QUESTION, "")
    assert handle.pending_elicitation() is None
    chosen = ElicitationResponse(action="accept", content={"selected": [1]})
    handle.respond_elicitation(asked.round_id, {"q0": chosen}, idempotency_key="1")
    assert handle.result(PATIENCE).output == "b"


def test_a_strict_call_waits_for_an_approval_that_edits_nothing(
    kit: MCPTestKit, parcels: Parcels, path: Path
) -> None:
    label = [{"call": "parcels:label", "as": "x"}, {"finish": "{{ x.status }}"}]
    agent(kit, *label).submit("Label", server=parcels()).result(PATIENCE)
    with inside(path):
        Tool.objects.filter(name="label").update(risk="strict")
    handle = agent(kit, *label).submit(
        "Label", server=parcels(), tools=["parcels:label"], human_input="managed"
    )
    (asked,) = rounds_of(handle)
    assert asked.kind is RoundKind.APPROVAL
    assert handle.pending_elicitation() is None
    edited = ElicitationResponse(action="accept", content={"decision": "allow", "arguments": {"x": 1}})
    with pytest.raises(ManagedInputValidationError, match="on the page"):
        handle.respond_elicitation(asked.round_id, {"approval": edited}, idempotency_key="1")
    allowed = ElicitationResponse(action="accept", content={"decision": "allow"})
    handle.respond_elicitation(asked.round_id, {"approval": allowed}, idempotency_key="2")
    assert handle.result(PATIENCE).output == "done"


def test_looking_is_quick_while_nothing_waits(kit: MCPTestKit) -> None:
    handle = agent(kit, {"sleep": 60}).submit("Sleep", human_input="managed")
    began = time.monotonic()
    assert handle.pending_elicitation() is None
    assert time.monotonic() - began < PATIENCE / 2
    handle.cancel()
