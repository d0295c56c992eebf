"""server-everything over both transports: what it offers, what its tools return, how a call ends."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from runs.mcp_client import Binding, Completed, HttpBinding, SessionInfo, ToolDefinition, inspect
from tests.mcp.bindings import LEGACY, PATIENCE
from tests.mcp.recorder import Recorder, text_of

pytestmark = pytest.mark.node

OFFERED = {
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
}
OFFERED_TO_WHO_CAN_ELICIT = {"trigger-elicitation-request", "trigger-url-elicitation"}
LONG = "trigger-long-running-operation"


async def tool(binding: Binding, name: str) -> ToolDefinition:
    found = await inspect(binding, saved=LEGACY, timeout=PATIENCE)
    return next(tool for tool in found.tools if tool.name == name)


async def test_it_is_recognised_as_a_server_of_the_older_generation(everything: Binding) -> None:
    found = await inspect(everything, timeout=PATIENCE)
    assert set(found.negotiated) == {"initialize"}
    assert found.protocol_version == "2025-11-25"
    assert found.server_name == "Everything Reference Server"
    assert found.problems == ()


async def test_the_tools_for_clients_that_elicit_by_form_and_url_are_listed_too(everything: Binding) -> None:
    found = await inspect(everything, timeout=PATIENCE)
    assert {tool.name for tool in found.tools} == OFFERED | OFFERED_TO_WHO_CAN_ELICIT
    assert found.prompts
    assert found.resources


async def test_text_goes_there_and_back_unchanged(everything: Binding, recorder: Recorder) -> None:
    message = "naïve “quotes” 世界 \u0000 \n <b>&amp;</b>"
    done = await recorder.perform(everything, "echo", {"message": message}, saved=LEGACY)
    assert text_of(done) == f"Echo: {message}"


async def test_numbers_are_added(everything: Binding, recorder: Recorder) -> None:
    done = await recorder.perform(everything, "get-sum", {"a": 2.5, "b": 40}, saved=LEGACY)
    assert text_of(done) == "The sum of 2.5 and 40 is 42.5."


async def test_wrong_arguments_come_back_as_the_tools_own_error(
    everything: Binding, recorder: Recorder
) -> None:
    done = await recorder.perform(everything, "get-sum", {"a": "two"}, saved=LEGACY)
    assert isinstance(done, Completed)
    assert done.is_error
    assert "Invalid arguments" in text_of(done)


async def test_structured_content_fits_the_tools_output_schema(
    everything: Binding, recorder: Recorder
) -> None:
    definition = await tool(everything, "get-structured-content")
    done = await recorder.perform(
        everything, definition.name, {"location": "Chicago"}, saved=LEGACY, definition=definition
    )
    assert isinstance(done, Completed)
    assert done.problem is None
    assert done.raw["structuredContent"] == {
        "temperature": 36,
        "conditions": "Light rain / drizzle",
        "humidity": 82,
    }


async def test_a_prompt_is_given(everything: Binding, recorder: Recorder) -> None:
    done = await recorder.perform(everything, "args-prompt", {"city": "Pune"}, kind="prompt", saved=LEGACY)
    assert isinstance(done, Completed)
    assert "Pune" in done.raw["messages"][0]["content"]["text"]


async def test_a_resource_is_read(everything: Binding, recorder: Recorder) -> None:
    uri = "demo://resource/dynamic/text/1"
    done = await recorder.perform(everything, uri, kind="resource", saved=LEGACY)
    assert isinstance(done, Completed)
    assert done.raw["contents"][0]["uri"] == uri


async def test_a_long_operation_reports_its_progress_in_order(
    everything: Binding, recorder: Recorder
) -> None:
    done = await recorder.perform(everything, LONG, {"duration": 0.3, "steps": 3}, saved=LEGACY)
    assert "completed" in text_of(done)
    assert recorder.progress == [(1, 3, None), (2, 3, None), (3, 3, None)]


async def test_a_cancelled_call_takes_its_session_with_it_and_the_server_answers_the_next(
    everything: Binding, recorder: Recorder
) -> None:
    under_way = asyncio.create_task(
        recorder.perform(
            everything, LONG, {"duration": 600, "steps": 6000}, saved=LEGACY, report_session=True
        )
    )
    async with asyncio.timeout(PATIENCE):
        while not recorder.progress:
            await asyncio.sleep(0.02)
    under_way.cancel()
    with pytest.raises(asyncio.CancelledError):
        await under_way
    assert is_over(recorder.sessions[0], everything)
    done = await recorder.perform(everything, "echo", {"message": "still there"}, saved=LEGACY)
    assert text_of(done) == "Echo: still there"


def is_over(session: SessionInfo, binding: Binding) -> bool:
    """Whether the session's child is gone, or its HTTP server no longer knows it."""
    if not isinstance(binding, HttpBinding):
        assert session.pid is not None
        return not Path(f"/proc/{session.pid}").exists()
    assert session.session_id is not None
    ping = urllib.request.Request(
        binding.url,
        data=b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        headers={
            "Mcp-Session-Id": session.session_id,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    try:
        urllib.request.urlopen(ping, timeout=PATIENCE).close()
    except urllib.error.HTTPError as refused:
        return refused.code in (400, 404)
    return False
