"""A result is never lost: not by its size, not by its shape, not by its schema."""

from __future__ import annotations

from typing import Any

import pytest

from runs.mcp_client import Completed, Failed, HttpBinding, ToolDefinition
from runs.mcp_client.mapping import tool_from_wire
from tests.mcp.bindings import LEGACY, module, raw
from tests.mcp.recorder import Recorder, text_of


def counting_tool(**schema: Any) -> ToolDefinition:
    output = schema or {"type": "object", "properties": {"count": {"type": "integer"}}}
    return tool_from_wire({"name": "x", "inputSchema": {"type": "object"}, "outputSchema": output})


@pytest.mark.parametrize("saved", [None, LEGACY], ids=["modern", "legacy"])
async def test_five_megabytes_arrive_over_http(
    playground: HttpBinding, recorder: Recorder, saved: Any
) -> None:
    assert (
        len(text_of(await recorder.perform(playground, "large", {"megabytes": 5}, saved=saved))) == 5_000_000
    )


async def test_five_megabytes_arrive_over_stdio(recorder: Recorder) -> None:
    outcome = await recorder.perform(module("tests.servers.playground"), "large", {"megabytes": 5})
    assert len(text_of(outcome)) == 5_000_000


@pytest.mark.parametrize("saved", [None, LEGACY], ids=["modern", "legacy"])
async def test_a_result_over_the_bound_is_refused_over_http(
    playground: HttpBinding, recorder: Recorder, saved: Any
) -> None:
    outcome = await recorder.perform(
        playground, "large", {"megabytes": 1.5}, saved=saved, max_bytes=1_000_000
    )
    assert isinstance(outcome, Failed)
    assert outcome.code == "too_large"
    assert "1 MB" in outcome.message
    assert not outcome.outcome_unknown


@pytest.mark.parametrize("generation", ["modern", "legacy"])
async def test_a_line_that_never_ends_is_refused_over_stdio(recorder: Recorder, generation: str) -> None:
    outcome = await recorder.perform(raw(generation), "endless_line", max_bytes=1_000_000)
    assert isinstance(outcome, Failed)
    assert outcome.code == "too_large"


async def test_a_result_without_a_type_is_a_complete_one(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "bare")
    assert isinstance(outcome, Completed)
    assert text_of(outcome) == "no resultType"
    assert outcome.problem is None


async def test_a_result_is_kept_verbatim_with_what_no_model_knows(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "odd_content")
    assert isinstance(outcome, Completed)
    assert outcome.raw == {
        "resultType": "complete",
        "content": [{"type": "hologram"}],
        "extra": {"kept": None},
    }


async def test_a_result_without_content_is_kept_and_said_to_lack_it(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("legacy"), "no_content", saved=LEGACY)
    assert isinstance(outcome, Completed)
    assert outcome.problem == "The result has no list of content."


async def test_structured_content_that_breaks_its_own_schema_is_kept_and_said_to(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "breaks_schema", definition=counting_tool())
    assert isinstance(outcome, Completed)
    assert outcome.raw["structuredContent"] == {"count": "three"}
    assert outcome.problem is not None
    assert "output schema at count" in outcome.problem


async def test_promised_structured_content_that_is_missing_is_said_to_be(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "forgets_schema", definition=counting_tool())
    assert isinstance(outcome, Completed)
    assert outcome.problem == "The tool promises structured content but sent none."


async def test_a_schema_that_refers_elsewhere_is_not_fetched(recorder: Recorder) -> None:
    definition = counting_tool(**{"$ref": "http://127.0.0.1:1/schema.json"})
    outcome = await recorder.perform(raw("modern"), "breaks_schema", definition=definition)
    assert isinstance(outcome, Completed)
    assert outcome.problem is not None
    assert "cannot be checked" in outcome.problem
