"""2025-11-25: the server asks on the open session, which waits for the person."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import (
    Answer,
    Completed,
    FormRequest,
    HttpBinding,
    Refusal,
    Request,
    UrlRequest,
    UrlsRequired,
)
from tests.mcp.bindings import LEGACY, PATIENCE, effects_in, module, raw
from tests.mcp.recorder import Recorder, accepting, text_of


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_every_action_reaches_the_server(
    playground: HttpBinding, recorder: Recorder, action: Any
) -> None:
    async def answer(_: Request) -> Answer:
        return Answer(action=action, content={"name": "Ada"})

    recorder.answer = answer
    done = await recorder.perform(playground, "ask_in_turn", {"times": 1}, saved=LEGACY)
    expected = {"action": action} | ({"content": {"name": "Ada"}} if action == "accept" else {})
    assert json.loads(text_of(done)) == [expected]


async def test_prompts_in_turn_are_all_asked_on_one_session(
    playground: HttpBinding, recorder: Recorder
) -> None:
    recorder.answer = accepting(name="Ada")
    await recorder.perform(playground, "ask_in_turn", {"times": 3}, saved=LEGACY)
    assert [request.message for request in recorder.asked] == ["Question 0", "Question 1", "Question 2"]
    assert {request.key for request in recorder.asked} == {"elicitation"}
    assert isinstance(recorder.asked[0], FormRequest)
    assert recorder.asked[0].schema["properties"]["name"]["minLength"] == 1


async def test_prompts_at_once_are_both_open_before_either_is_answered(
    playground: HttpBinding, recorder: Recorder
) -> None:
    both_open = asyncio.Event()

    async def answer(request: Request) -> Answer:
        if len(recorder.asked) == 2:
            both_open.set()
        await both_open.wait()
        return Answer(action="accept", content={"name": request.message})

    recorder.answer = answer
    done = await recorder.perform(playground, "ask_at_once", saved=LEGACY)
    assert json.loads(text_of(done)) == [{"name": "left"}, {"name": "right"}]


async def test_prompts_work_over_stdio(recorder: Recorder) -> None:
    recorder.answer = accepting(name="Ada")
    done = await recorder.perform(
        module("tests.servers.playground"), "ask_in_turn", {"times": 2}, saved=LEGACY
    )
    assert [answer["content"] for answer in json.loads(text_of(done))] == [{"name": "Ada"}] * 2


async def test_a_url_prompt_carries_its_id_and_its_completion_is_reported(
    playground: HttpBinding, recorder: Recorder
) -> None:
    recorder.answer = accepting()
    done = await recorder.perform(playground, "ask_url", {"url": "https://id.example/x"}, saved=LEGACY)
    assert text_of(done) == "accept"
    assert recorder.asked == [
        UrlRequest(key="elicitation", message="Connect", url="https://id.example/x", elicitation_id="e-1")
    ]
    assert recorder.completed == ["e-1"]


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://", "https://x y", "x"])
async def test_a_url_that_is_no_web_address_is_refused_to_the_server(recorder: Recorder, url: str) -> None:
    recorder.answer = accepting()
    params = {"mode": "url", "message": "Go", "url": url, "elicitationId": "e"}
    done = await recorder.perform(raw("legacy"), "asks", {"params": params}, saved=LEGACY)
    assert isinstance(done, Completed)
    assert done.raw["structuredContent"]["error"]["code"] == -32602
    assert recorder.asked == []


async def test_an_odd_form_is_asked_all_the_same(recorder: Recorder) -> None:
    """The SDK's own models would refuse the nested schema's answer and drop what they do not know."""
    recorder.answer = accepting(deep={"n": None})
    schema = {"type": "object", "properties": {"deep": {"type": "object"}}, "x-vendor": [1]}
    params = {"message": "?", "requestedSchema": schema, "_meta": {"vendor": 1}}
    done = await recorder.perform(raw("legacy"), "asks", {"params": params}, saved=LEGACY)
    assert isinstance(done, Completed)
    assert done.raw["structuredContent"]["result"] == {"action": "accept", "content": {"deep": {"n": None}}}
    assert recorder.asked == [FormRequest(key="elicitation", message="?", schema=schema, meta={"vendor": 1})]


@pytest.mark.parametrize("schema", [None, [], {"type": "array"}, {"type": "object", "properties": []}])
async def test_a_form_without_a_usable_schema_is_refused_to_the_server(
    recorder: Recorder, schema: Any
) -> None:
    recorder.answer = accepting()
    params = {"message": "?", "requestedSchema": schema}
    done = await recorder.perform(raw("legacy"), "asks", {"params": params}, saved=LEGACY)
    assert isinstance(done, Completed)
    assert "schema" in done.raw["structuredContent"]["error"]["message"]
    assert recorder.asked == []


async def test_without_anybody_to_ask_the_server_is_refused_at_once(
    playground: HttpBinding, recorder: Recorder
) -> None:
    done = await recorder.perform(playground, "ask_or_say_why", saved=LEGACY)
    assert text_of(done) == "refused: -32600 Nobody may be asked during this call."


async def test_a_refusal_gives_the_server_its_reason(playground: HttpBinding, recorder: Recorder) -> None:
    async def refuse(_: Request) -> Refusal:
        return Refusal("This run asks nobody.")

    recorder.answer = refuse
    done = await recorder.perform(playground, "ask_or_say_why", saved=LEGACY)
    assert text_of(done) == "refused: -32600 This run asks nobody."


async def test_a_call_that_wants_a_url_first_ends_and_is_made_again(
    playground: HttpBinding, recorder: Recorder
) -> None:
    outcome = await recorder.perform(playground, "needs_url", {"tag": "once"}, saved=LEGACY)
    assert isinstance(outcome, UrlsRequired)
    assert outcome.requests == {
        "elicitation": UrlRequest(
            key="elicitation", message="Log in first", url="https://id.example/x", elicitation_id="e-2"
        )
    }
    again = await recorder.perform(playground, "needs_url", {"tag": "once"}, saved=LEGACY)
    assert text_of(again) == "logged in"


async def test_more_prompts_than_anybody_could_answer_are_refused(recorder: Recorder) -> None:
    """25 at once; nobody answers before five replies have reached the server, which are then refusals."""

    async def answer(_: Request) -> Answer:
        async with asyncio.timeout(PATIENCE):
            while "five" not in recorder.completed:
                await asyncio.sleep(0.02)
        return Answer(action="decline")

    recorder.answer = answer
    done = await recorder.perform(raw("legacy"), "asks_often", {"times": 25}, saved=LEGACY)
    assert isinstance(done, Completed)
    refused = ["error" in reply for reply in done.raw["structuredContent"]["replies"]]
    assert refused == [True] * 5 + [False] * 20


async def test_an_exception_of_the_callback_stops_the_call_and_its_text_stays_here(
    recorder: Recorder, tmp_path: Path
) -> None:
    class LeaseGoneError(Exception):
        pass

    async def answer(_: Request) -> Answer:
        raise LeaseGoneError("secret")

    recorder.answer = answer
    params = {"message": "?", "requestedSchema": {"type": "object"}}
    server = raw("legacy", M3_EFFECTS=str(tmp_path / "seen"))
    with pytest.raises(LeaseGoneError):
        await recorder.perform(server, "asks_and_hangs", {"params": params}, saved=LEGACY)
    received = [entry["message"] for entry in effects_in(tmp_path / "seen")]
    (refusal,) = [message for message in received if message.get("id") == "ask-1"]
    assert refusal["error"]["message"] == "The client had to stop."
    assert "secret" not in json.dumps(received)


async def test_a_prompt_ends_when_its_server_does(recorder: Recorder) -> None:
    ended = asyncio.Event()

    async def answer(_: Request) -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    recorder.answer = answer
    outcome = await recorder.perform(raw("legacy"), "asks_then_dies", {"after": 0.2}, saved=LEGACY)
    assert getattr(outcome, "code", None) == "server_died"
    assert ended.is_set()
