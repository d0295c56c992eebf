"""server-everything asks by form and by URL; every answer reaches it as it was given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.mcp_client import (
    Answer,
    Binding,
    Completed,
    FormRequest,
    Outcome,
    Refusal,
    Request,
    UrlRequest,
    UrlsRequired,
)
from runs.schema_check import validate
from tests.mcp.bindings import LEGACY
from tests.mcp.recorder import Recorder, accepting

pytestmark = pytest.mark.node

FORM, URL = "trigger-elicitation-request", "trigger-url-elicitation"
ADDRESS = {"url": "https://bank.example/consent?id=7", "message": "Connect your bank", "elicitationId": "e-7"}
EVERY_FIELD: dict[str, Any] = {
    "name": "Ada Lovelace",
    "check": True,
    "firstLine": "Call me Ishmael.",
    "email": "ada@example.org",
    "homepage": "https://ada.example/~ada",
    "birthdate": "1815-12-10",
    "integer": 7,
    "number": 2.75,
    "untitledSingleSelectEnum": "Joey",
    "untitledMultipleSelectEnum": ["Piano", "Drums"],
    "titledSingleSelectEnum": "hero-2",
    "titledMultipleSelectEnum": ["fish-1", "fish-3"],
    "legacyTitledEnum": "pet-4",
}


def texts(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, Completed), outcome
    assert not outcome.is_error, outcome
    return [block["text"] for block in outcome.raw["content"]]


def answer_it_got(outcome: Outcome) -> Any:
    """The answer as the server prints it at the end of its result."""
    return json.loads(texts(outcome)[-1].partition("Raw result: ")[2])


async def refuse(_: Request) -> Refusal:
    return Refusal("This run asks nobody.")


async def test_an_accepted_form_arrives_with_every_field_and_its_type(
    everything: Binding, recorder: Recorder
) -> None:
    recorder.answer = accepting(**EVERY_FIELD)
    done = await recorder.perform(everything, FORM, saved=LEGACY)
    assert answer_it_got(done) == {"action": "accept", "content": EVERY_FIELD}
    (request,) = recorder.asked
    assert isinstance(request, FormRequest)
    assert set(request.schema["properties"]) == set(EVERY_FIELD)
    assert validate(request.schema, EVERY_FIELD) == []


@pytest.mark.parametrize(
    ("action", "words"),
    [("decline", "User declined to provide"), ("cancel", "User cancelled the elicitation")],
)
async def test_a_form_that_is_not_accepted_sends_no_content(
    everything: Binding, recorder: Recorder, action: Any, words: str
) -> None:
    async def answer(_: Request) -> Answer:
        return Answer(action=action, content=EVERY_FIELD)

    recorder.answer = answer
    done = await recorder.perform(everything, FORM, saved=LEGACY)
    assert words in texts(done)[0]
    assert answer_it_got(done) == {"action": action}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("accept", "User completed the URL elicitation flow"),
        ("decline", "User declined to open the URL"),
        ("cancel", "User cancelled the URL elicitation"),
    ],
)
async def test_every_answer_to_a_url_reaches_the_server(
    everything: Binding, recorder: Recorder, action: Any, words: str
) -> None:
    async def answer(_: Request) -> Answer:
        return Answer(action=action)

    recorder.answer = answer
    done = await recorder.perform(everything, URL, ADDRESS, saved=LEGACY)
    assert words in texts(done)[0]
    assert answer_it_got(done) == {"action": action}
    assert recorder.asked == [
        UrlRequest(key="elicitation", message=ADDRESS["message"], url=ADDRESS["url"], elicitation_id="e-7")
    ]


async def test_a_call_that_needs_a_url_first_ends_with_that_url(
    everything: Binding, recorder: Recorder
) -> None:
    outcome = await recorder.perform(everything, URL, {**ADDRESS, "errorPath": True}, saved=LEGACY)
    assert isinstance(outcome, UrlsRequired)
    (request,) = outcome.requests.values()
    assert request.url == "https://modelcontextprotocol.io"
    assert recorder.asked == []


async def test_where_nobody_may_be_asked_the_tool_fails_with_our_reason(
    everything: Binding, recorder: Recorder
) -> None:
    recorder.answer = refuse
    done = await recorder.perform(everything, FORM, saved=LEGACY)
    assert isinstance(done, Completed)
    assert done.is_error
    assert "This run asks nobody." in done.raw["content"][0]["text"]
