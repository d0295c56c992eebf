"""Every way in which a server fails has a code, a sentence, and the truth about whether the call went out."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from runs.mcp_client import Completed, Failed, HttpBinding, InspectionFailed, Outcome, StdioBinding, inspect
from tests.mcp.bindings import LEGACY, PATIENCE, free_port, raw
from tests.mcp.recorder import Recorder, text_of


def failed(outcome: Outcome, code: str) -> Failed:
    assert isinstance(outcome, Failed), outcome
    assert outcome.code == code, outcome
    return outcome


@pytest.mark.parametrize("generation", ["modern", "legacy"])
async def test_a_server_that_dies_during_the_call_leaves_the_outcome_unknown(
    recorder: Recorder, generation: str
) -> None:
    outcome = failed(await recorder.perform(raw(generation), "dies"), "server_died")
    assert outcome.outcome_unknown
    assert "RuntimeError: out of cheese" in outcome.message
    assert "\x1b" not in outcome.message


async def test_a_command_that_does_not_exist_was_never_reached(recorder: Recorder) -> None:
    outcome = await recorder.perform(StdioBinding(command="no-such-program-m3"), "x")
    assert not failed(outcome, "unreachable").sent
    assert "no-such-program-m3" in outcome.message  # type: ignore[union-attr]


async def test_a_program_that_is_no_server_was_never_reached(recorder: Recorder) -> None:
    program = StdioBinding(command=sys.executable, args=("-c", "import sys; sys.exit('needs a licence')"))
    outcome = failed(await recorder.perform(program, "x"), "server_died")
    assert not outcome.sent
    assert "needs a licence" in outcome.message


async def test_a_port_on_which_nothing_listens_was_never_reached(recorder: Recorder) -> None:
    server = HttpBinding(url=f"http://127.0.0.1:{free_port()}/mcp", allow_private=True)
    assert not failed(await recorder.perform(server, "x"), "unreachable").sent


async def test_a_call_that_finds_its_modern_server_gone_was_never_sent(
    playground: HttpBinding, recorder: Recorder
) -> None:
    """With a saved discovery the call is the first message, so a refused connection is a call not made."""
    saved = (await inspect(playground, timeout=PATIENCE)).negotiated
    gone = HttpBinding(url=f"http://127.0.0.1:{free_port()}/mcp", allow_private=True)
    definition = (await inspect(playground, timeout=PATIENCE)).tools[0]
    outcome = await recorder.perform(gone, definition.name, saved=saved, definition=definition)
    assert not failed(outcome, "unreachable").sent
    assert [entry[0] for entry in recorder.journal] == ["sent"]


async def test_a_private_address_is_refused_when_connecting(recorder: Recorder) -> None:
    outcome = failed(await recorder.perform(HttpBinding(url="https://127.0.0.1:1/mcp"), "x"), "unreachable")
    assert not outcome.sent
    assert "loopback" in outcome.message


async def test_a_host_that_cannot_be_resolved_is_unreachable(recorder: Recorder) -> None:
    outcome = await recorder.perform(HttpBinding(url="https://no-such-host.invalid/mcp"), "x")
    assert "no-such-host.invalid" in failed(outcome, "unreachable").message


async def test_an_error_answer_is_a_refusal_with_the_servers_words(recorder: Recorder) -> None:
    """Its code is the one that the SDK also uses for a lost connection."""
    outcome = failed(await recorder.perform(raw("modern"), "out_of_stock"), "refused_by_server")
    assert "Out of stock <b>today</b>" in outcome.message
    assert outcome.answered


async def test_an_unknown_tool_is_a_refusal(recorder: Recorder) -> None:
    assert (
        "Unknown tool" in failed(await recorder.perform(raw("legacy"), "nope"), "refused_by_server").message
    )


async def test_urls_that_are_not_named_are_a_protocol_error(recorder: Recorder) -> None:
    failed(await recorder.perform(raw("legacy"), "bad_urls"), "protocol_error")


async def test_a_tool_that_fails_is_a_result(playground: HttpBinding, recorder: Recorder) -> None:
    outcome = await recorder.perform(playground, "fails")
    assert isinstance(outcome, Completed)
    assert outcome.is_error
    assert "the disk is full" in text_of(outcome)


async def test_inspection_fails_with_the_same_words() -> None:
    with pytest.raises(InspectionFailed, match="cannot be reached") as caught:
        await inspect(StdioBinding(command="no-such-program-m3"), timeout=PATIENCE)
    assert caught.value.details == {"reason": "unreachable"}
    assert caught.value.status == 502


async def test_inspection_with_an_outdated_negotiation_looks_again() -> None:
    modern: Any = {"discover": {"supportedVersions": ["2026-07-28"], "capabilities": {}}}
    found = await inspect(raw("legacy-exits"), saved=LEGACY, timeout=PATIENCE)
    assert found.protocol_version == "2025-11-25"
    again = await inspect(raw("modern"), saved=LEGACY, timeout=PATIENCE)
    assert set(again.negotiated) == set(modern)
