"""A worker is killed while an older server asks over HTTP; another one goes on with the server's session."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import (
    Answer,
    Completed,
    Failed,
    HttpBinding,
    LiveSession,
    Request,
    SessionLost,
    end_session,
)
from runs.mcp_client import resumed_http as http
from tests.mcp.bindings import LEGACY, PATIENCE, ROOT, effects_in, free_port, listens, wait_for
from tests.mcp.killed import first_worker, go_on, keep_in
from tests.mcp.recorder import Recorder, accepting, text_of
from tests.servers.raw_http import Reply, raw_http


@pytest.fixture(scope="session")
def forgetful(serve_http: Callable[..., str], effects: Path) -> HttpBinding:
    """A playground that keeps no events."""
    url = serve_http("tests.servers.playground", M3_EFFECTS=str(effects), M3_NO_EVENTS="1")
    return HttpBinding(url=url, allow_private=True)


def done_by(effects: Path, what: str, tag: str) -> list[dict[str, Any]]:
    return [entry for entry in effects_in(effects) if entry["what"] == what and entry.get("tag") == tag]


async def test_a_prompt_that_was_open_is_answered_first_and_then_the_reply_is_fetched(
    playground: HttpBinding, effects: Path, tmp_path: Path, recorder: Recorder
) -> None:
    with first_worker(playground, keep_in(tmp_path), "ask_in_turn", {"times": 1, "tag": "open"}) as first:
        first.until("prompt")
        first.kill()
    recorder.answer = accepting(name="Ada")
    done = await go_on(recorder, first.live(), keep_in(tmp_path), binding=playground)
    assert json.loads(text_of(done)) == [{"action": "accept", "content": {"name": "Ada"}}]
    assert [request.message for request in recorder.asked] == ["Question 0"]
    assert [entry[0] for entry in recorder.journal] == ["result"]
    assert len(done_by(effects, "ask_in_turn began", "open")) == 1


async def test_prompts_that_come_after_the_answer_are_asked_too_and_none_twice(
    playground: HttpBinding, effects: Path, tmp_path: Path, recorder: Recorder
) -> None:
    arguments = {"times": 4, "tag": "more"}
    with first_worker(playground, keep_in(tmp_path), "ask_in_turn", arguments, {"name": "first"}) as first:
        first.until("prompt", 2)
        first.kill()
    recorder.answer = accepting(name="Ada")
    done = await go_on(recorder, first.live(), keep_in(tmp_path), binding=playground)
    names = [answer["content"]["name"] for answer in json.loads(text_of(done))]
    assert names == ["first", "Ada", "Ada", "Ada"]
    assert [request.message for request in recorder.asked] == ["Question 1", "Question 2", "Question 3"]
    assert len(done_by(effects, "ask_in_turn began", "more")) == 1


async def test_a_stream_that_is_read_from_its_beginning_asks_nothing_twice(
    playground: HttpBinding, effects: Path, tmp_path: Path, recorder: Recorder
) -> None:
    arguments = {"times": 3, "tag": "beginning"}
    with first_worker(playground, keep_in(tmp_path), "ask_in_turn", arguments, {"name": "first"}) as first:
        first.until("prompt", 2)
        first.kill()
    tokens = [
        fact["session"]["resumption_token"]
        for fact in first.facts
        if fact.get("session", {}).get("resumption_token")
    ]
    live = dataclasses.replace(first.live(), resumption_token=tokens[0])
    recorder.answer = accepting(name="Ada")
    done = await go_on(recorder, live, keep_in(tmp_path), binding=playground)
    assert isinstance(done, Completed), done
    assert [request.message for request in recorder.asked] == ["Question 1", "Question 2"]


async def test_a_prompt_that_was_never_stored_is_repeated_by_the_server(
    playground: HttpBinding, tmp_path: Path, recorder: Recorder
) -> None:
    """Two at once; the second one was only heard, since a call has one open round."""
    with first_worker(playground, keep_in(tmp_path), "ask_at_once", {}) as first:
        first.until("prompt", 2)
        first.kill()
    prompts = [fact for fact in first.facts if "prompt" in fact]
    first.facts.remove(prompts[1])
    recorder.answer = accepting(name="Ada")
    done = await go_on(recorder, first.live(), keep_in(tmp_path), binding=playground)
    assert json.loads(text_of(done)) == [{"name": "Ada"}, {"name": "Ada"}]
    assert sorted(request.message for request in recorder.asked) == ["left", "right"]


async def test_a_call_that_asked_nothing_yet_is_followed_by_its_first_token(
    playground: HttpBinding, tmp_path: Path, recorder: Recorder
) -> None:
    arguments = {"times": 1, "tag": "token"}
    with first_worker(playground, keep_in(tmp_path), "ask_in_turn", arguments) as first:
        first.until("prompt")
        first.kill()
    first.facts = [fact for fact in first.facts if "prompt" not in fact]
    assert first.live().resumption_token
    recorder.answer = accepting(name="Ada")
    done = await go_on(recorder, first.live(), keep_in(tmp_path), binding=playground)
    assert isinstance(done, Completed), done
    assert [request.message for request in recorder.asked] == ["Question 0"]


async def test_where_the_server_keeps_nothing_the_answer_lands_and_the_outcome_is_unknown(
    forgetful: HttpBinding, effects: Path, tmp_path: Path, recorder: Recorder
) -> None:
    arguments = {"times": 1, "tag": "forgetful"}
    with first_worker(forgetful, keep_in(tmp_path), "ask_in_turn", arguments) as first:
        first.until("prompt")
        first.kill()
    recorder.answer = accepting(name="Ada")
    lost = await go_on(recorder, first.live(), keep_in(tmp_path), binding=forgetful)
    assert isinstance(lost, Failed), lost
    assert lost.outcome_unknown
    assert "keeps nothing for a client that comes back" in lost.message
    (entry,) = await asyncio.to_thread(
        wait_for, lambda: done_by(effects, "ask_in_turn", "forgetful"), "the answer to land"
    )
    assert entry["answers"] == [{"action": "accept", "content": {"name": "Ada"}}]


async def test_a_server_that_was_started_anew_does_not_know_the_session(
    tmp_path: Path, recorder: Recorder
) -> None:
    port = free_port()
    binding = HttpBinding(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)

    def start() -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.playground", "--http", str(port)], cwd=ROOT
        )
        wait_for(lambda: listens(port), "the server")
        return server

    server = start()
    try:
        with first_worker(binding, keep_in(tmp_path), "ask_in_turn", {"times": 1}) as first:
            first.until("prompt")
            first.kill()
        server.kill()
        server.wait(PATIENCE)
        server = start()
        lost = await go_on(recorder, first.live(), keep_in(tmp_path), binding=binding)
    finally:
        server.kill()
        server.wait(PATIENCE)
    assert isinstance(lost, SessionLost), lost
    assert (lost.lost, recorder.asked) == ("server", []), "nobody is kept waiting for what is gone"
    assert "HTTP status 404" in lost.message


async def test_a_server_that_cannot_be_reached_is_given_up_after_a_while(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "REACH_SECONDS", 0.5)
    binding = HttpBinding(url=f"http://127.0.0.1:{free_port()}/mcp", allow_private=True)
    live = LiveSession(negotiated=LEGACY, operation_id="m3-1", session_id="s", resumption_token="1")
    lost = await go_on(recorder, live, keep_in(tmp_path), binding=binding)
    assert isinstance(lost, SessionLost), lost
    assert "it cannot be reached" in lost.message


async def test_stopping_quietly_leaves_the_servers_session_and_another_goes_on(
    playground: HttpBinding, effects: Path, tmp_path: Path, recorder: Recorder
) -> None:
    keep, asked = keep_in(tmp_path), asyncio.Event()

    async def wait(_: Request) -> Answer:
        keep.leave = True
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    recorder.answer = wait
    arguments = {"times": 1, "tag": "quiet"}
    call = asyncio.create_task(
        recorder.perform(playground, "ask_in_turn", arguments, saved=LEGACY, keep=keep)
    )
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    info, (prompt,) = recorder.sessions[-1], recorder.asked
    live = LiveSession(
        negotiated=info.negotiated,
        operation_id=info.jsonrpc_id,
        session_id=info.session_id,
        resumption_token=info.resumption_token,
        open_prompts=(prompt,),
    )
    second = Recorder(answer=accepting(name="Ada"))
    done = await go_on(second, live, keep_in(tmp_path), binding=playground)
    assert json.loads(text_of(done)) == [{"action": "accept", "content": {"name": "Ada"}}]
    again = await go_on(Recorder(), live, keep_in(tmp_path), binding=playground)
    assert isinstance(again, SessionLost), "whoever finishes the call ends its session"


async def test_a_call_that_nobody_wants_any_more_is_cancelled_and_its_session_closed(
    playground: HttpBinding, effects: Path, tmp_path: Path, recorder: Recorder
) -> None:
    with first_worker(playground, keep_in(tmp_path), "slow", {"tag": "unwanted"}) as first:
        await asyncio.to_thread(
            wait_for, lambda: done_by(effects, "slow started", "unwanted"), "the call to begin"
        )
        first.until("session")
        first.kill()
    await end_session(playground, first.live(), token=1)
    await asyncio.to_thread(
        wait_for, lambda: done_by(effects, "slow cancelled", "unwanted"), "the server to hear of it"
    )
    lost = await go_on(recorder, first.live(), keep_in(tmp_path), binding=playground)
    assert isinstance(lost, SessionLost), lost


async def test_the_call_itself_is_never_sent_again_and_every_request_names_session_and_version(
    tmp_path: Path, recorder: Recorder
) -> None:
    """A server that answers what it is asked and never replies to the call: it is given up in time."""

    def answer(message: dict[str, Any], headers: dict[str, str]) -> Reply:
        if message.get("method") == "ping":
            return Reply({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        return Reply(b"", 202)

    negotiated = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": {"name": "x", "version": "1"},
        }
    }
    with raw_http(answer) as server:
        binding = HttpBinding(url=server.url, allow_private=True)
        live = LiveSession(negotiated=negotiated, operation_id="m3-1", session_id="s-1", resumption_token="7")
        outcome = await go_on(recorder, live, keep_in(tmp_path), binding=binding, timeout=2.5)
    assert isinstance(outcome, Failed), outcome
    assert outcome.sent
    assert server.methods() == ["ping", "notifications/cancelled"]
    for _, headers in server.seen:
        assert headers["mcp-session-id"] == "s-1"
        assert headers["mcp-protocol-version"] == "2025-11-25"
