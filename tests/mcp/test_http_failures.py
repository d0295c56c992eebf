"""HTTP servers that answer with statuses, redirects, other encodings or nothing."""

from __future__ import annotations

import asyncio
import gzip
import threading
from typing import Any

import pytest

from runs.mcp_client import Completed, Failed, HttpBinding, InspectionFailed, Outcome, inspect
from runs.mcp_client.mapping import tool_from_wire
from tests.mcp.bindings import LEGACY, PATIENCE
from tests.mcp.recorder import Recorder
from tests.servers.raw_http import MODERN, RawHttp, Reply, error, raw_http, result

PLAIN = tool_from_wire({"name": "x", "inputSchema": {"type": "object"}})
MIRRORED = tool_from_wire(
    {
        "name": "x",
        "inputSchema": {"type": "object", "properties": {"team": {"type": "string", "x-mcp-header": "Team"}}},
    }
)


def at(server: RawHttp, **headers: str) -> HttpBinding:
    return HttpBinding(url=server.url, headers=headers, allow_private=True)


async def call(recorder: Recorder, server: RawHttp, **options: Any) -> Outcome:
    return await recorder.perform(at(server), "x", saved=MODERN, **({"definition": PLAIN} | options))


async def test_a_proxy_in_the_environment_is_not_used(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would connect in our place, where the egress guard cannot see to what."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with raw_http(lambda message, _: result(message, content=[])) as server:
        assert isinstance(await call(recorder, server), Completed)


@pytest.mark.parametrize(
    ("status", "advice", "unknown"),
    [
        (401, "credentials", False),
        (403, "credentials", False),
        (404, "Check its URL", False),
        (405, "Check its URL", False),
        (429, "Try again later", False),
        (500, "Look into its log", True),
        (503, "Look into its log", True),
    ],
)
async def test_a_status_is_named_with_what_to_do(
    recorder: Recorder, status: int, advice: str, unknown: bool
) -> None:
    """A 5xx may come from a gateway in front of a server that is still at work."""
    with raw_http(lambda *_: Reply(b"no", status, {"content-type": "text/plain"})) as server:
        outcome = await call(recorder, server)
    assert isinstance(outcome, Failed)
    assert outcome.code == "http_status"
    assert f"status {status}" in outcome.message
    assert advice in outcome.message
    assert outcome.outcome_unknown is unknown


async def test_a_status_during_inspection_is_named() -> None:
    with (
        raw_http(lambda *_: Reply(b"no", 401, {"content-type": "text/plain"})) as server,
        pytest.raises(InspectionFailed, match="HTTP status 401"),
    ):
        await inspect(at(server), timeout=PATIENCE)


async def test_a_redirect_to_another_origin_is_not_followed(recorder: Recorder) -> None:
    with (
        raw_http(lambda message, _: result(message, content=[])) as other,
        raw_http(lambda *_: Reply(b"", 307, {"location": other.url})) as server,
    ):
        outcome = await call(recorder, server)
    assert isinstance(outcome, Failed)
    assert outcome.code == "http_status"
    assert "Enter the final URL" in outcome.message
    assert other.seen == []


async def test_a_connection_that_breaks_during_the_call_leaves_the_outcome_unknown(
    recorder: Recorder,
) -> None:
    with raw_http(lambda *_: Reply(status=None)) as server:
        outcome = await call(recorder, server)
    assert isinstance(outcome, Failed)
    assert outcome.code == "server_died"
    assert outcome.outcome_unknown


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"<html>Welcome</html>"),
        Reply(b"<html>Welcome</html>", headers={"content-type": "text/html"}),
        Reply(b"", 202),
        Reply(b"data: {}\n\n", headers={"content-type": "text/event-stream"}),
    ],
    ids=["not json", "html", "accepted", "event"],
)
async def test_an_answer_that_is_not_an_mcp_message_is_a_protocol_error(
    recorder: Recorder, reply: Reply
) -> None:
    with raw_http(lambda *_: reply) as server:
        outcome = await call(recorder, server)
    assert isinstance(outcome, Failed)
    assert outcome.code == "protocol_error"
    assert "Check that the URL" in outcome.message


async def test_a_compressed_answer_is_refused_unread(recorder: Recorder) -> None:
    bomb = gzip.compress(b"0" * 5_000_000)
    with raw_http(lambda *_: Reply(bomb, headers={"content-encoding": "gzip"})) as server:
        outcome = await call(recorder, server)
        assert server.seen[0][1]["accept-encoding"] == "identity"
    assert isinstance(outcome, Failed)
    assert outcome.code == "protocol_error"
    assert "compress" in outcome.message


async def test_a_body_over_the_bound_is_refused(recorder: Recorder) -> None:
    with raw_http(lambda message, _: result(message, content=[], filler="x" * 2_000_000)) as server:
        outcome = await call(recorder, server, max_bytes=1_000_000)
    assert isinstance(outcome, Failed)
    assert outcome.code == "too_large"


async def test_the_bindings_headers_go_with_every_request(recorder: Recorder) -> None:
    with raw_http(lambda message, _: result(message, content=[])) as server:
        binding = at(server, Authorization="Bearer t0ken")
        await recorder.perform(binding, "x", saved=MODERN)
    assert server.methods() == ["tools/list", "tools/call"]
    assert {headers["authorization"] for _, headers in server.seen} == {"Bearer t0ken"}


async def test_arguments_that_a_known_definition_maps_to_headers_are_mirrored(recorder: Recorder) -> None:
    with raw_http(lambda message, _: result(message, content=[])) as server:
        await call(recorder, server, definition=MIRRORED, arguments={"team": "ops"})
    assert server.methods() == ["tools/call"]
    assert server.seen[0][1]["mcp-param-team"] == "ops"
    assert server.seen[0][1]["mcp-name"] == "x"


async def test_a_header_mismatch_lists_anew_and_calls_once_more(recorder: Recorder) -> None:
    def answer(message: dict[str, Any], headers: dict[str, str]) -> Reply:
        if message["method"] == "tools/list":
            return result(message, tools=[{"name": "x", "inputSchema": MIRRORED.input_schema}])
        if "mcp-param-team" not in headers:
            return error(message, -32020, "Header mismatch")
        return result(message, content=[])

    with raw_http(answer) as server:
        outcome = await call(recorder, server, arguments={"team": "ops"})
    assert isinstance(outcome, Completed)
    assert server.methods() == ["tools/call", "tools/list", "tools/call"]
    assert [entry[0] for entry in recorder.journal] == ["sent", "error", "sent", "result"]
    assert recorder.journal[0][1] != recorder.journal[2][1]


async def test_a_header_mismatch_that_stays_is_a_refusal(recorder: Recorder) -> None:
    def answer(message: dict[str, Any], _: dict[str, str]) -> Reply:
        if message["method"] == "tools/list":
            return result(message, tools=[])
        return error(message, -32020, "Header mismatch")

    with raw_http(answer) as server:
        outcome = await call(recorder, server)
    assert isinstance(outcome, Failed)
    assert outcome.code == "refused_by_server"
    assert server.methods().count("tools/call") == 2


def opening(message: dict[str, Any]) -> Reply | None:
    """What an older server answers to a handshake and to notices; None for anything else."""
    if message["method"] == "initialize":
        info = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "serverInfo": {"name": "r", "version": "1"},
        }
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": info}
        return Reply(reply, headers={"mcp-session-id": "s-1"})
    return Reply(b"", 202) if "id" not in message else None


async def test_a_server_that_wants_a_handshake_gets_one_on_every_session(recorder: Recorder) -> None:
    def answer(message: dict[str, Any], _: dict[str, str]) -> Reply:
        return opening(message) or result(message, content=[])

    with raw_http(answer) as server:
        outcome = await recorder.perform(at(server), "x", saved=LEGACY, report_session=True)
    assert isinstance(outcome, Completed)
    assert server.methods()[0] == "initialize"
    assert server.seen[-1][1]["mcp-session-id"] == "s-1"
    assert recorder.sessions[0].session_id == "s-1"


@pytest.mark.parametrize("report_session", [False, True], ids=["plain", "resumable"])
async def test_an_older_server_is_told_of_the_cancellation(recorder: Recorder, report_session: bool) -> None:
    """Closing the connection is no signal in that generation, and the SDK says nothing for a resumable call."""
    finish = threading.Event()

    def answer(message: dict[str, Any], _: dict[str, str]) -> Reply:
        if (reply := opening(message)) is not None:
            return reply
        finish.wait(PATIENCE)
        return result(message, content=[])

    with raw_http(answer) as server:
        call = asyncio.create_task(
            recorder.perform(at(server), "x", saved=LEGACY, report_session=report_session)
        )
        async with asyncio.timeout(PATIENCE):
            while "tools/call" not in server.methods():
                await asyncio.sleep(0.02)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        finish.set()
    (notice,) = [message for message, _ in server.seen if message["method"] == "notifications/cancelled"]
    assert notice["params"]["requestId"] == recorder.journal[0][1]
