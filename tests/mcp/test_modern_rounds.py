"""2026-07-28: a call returns what it wants to know, the connection closes, a later leg brings the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.mcp_client import (
    Answer,
    Completed,
    Failed,
    FormRequest,
    HttpBinding,
    InputRequired,
    Outcome,
    StateRefused,
    UrlRequest,
    answer_to_wire,
)
from tests.mcp.bindings import STATE_KEY, module, raw
from tests.mcp.recorder import Recorder, text_of


def accept(**content: Any) -> dict[str, Any]:
    return answer_to_wire(Answer(action="accept", content=content or None))


def asked(outcome: Outcome) -> InputRequired:
    assert isinstance(outcome, InputRequired), outcome
    return outcome


async def test_one_round_may_hold_several_requests_each_under_the_servers_own_key(
    playground: HttpBinding, recorder: Recorder
) -> None:
    requests = asked(await recorder.perform(playground, "many_keys")).requests
    assert set(requests) == {"name", "a:choice", "pay"}
    assert isinstance(requests["name"], FormRequest)
    assert requests["name"].message == "Your name?"
    assert requests["name"].schema["required"] == ["name"]
    assert isinstance(requests["pay"], UrlRequest)
    assert requests["pay"].url == "https://pay.example/1"
    assert requests["pay"].elicitation_id is None


async def test_a_server_asks_again_only_for_what_it_misses(
    playground: HttpBinding, recorder: Recorder
) -> None:
    first = asked(await recorder.perform(playground, "many_keys"))
    second = asked(
        await recorder.perform(
            playground,
            "many_keys",
            input_responses={"name": accept(name="Ada"), "pay": accept()},
            request_state=first.request_state,
        )
    )
    assert set(second.requests) == {"a:choice"}
    done = await recorder.perform(
        playground,
        "many_keys",
        input_responses={"a:choice": accept(size="m")},
        request_state=second.request_state,
    )
    assert json.loads(text_of(done))["name"]["content"] == {"name": "Ada"}


async def test_three_rounds_of_one_call_end_in_its_result(
    playground: HttpBinding, recorder: Recorder
) -> None:
    outcome = await recorder.perform(playground, "three_rounds")
    for turn, name in enumerate(("a", "b", "c")):
        outcome = await recorder.perform(
            playground,
            "three_rounds",
            input_responses={f"q{turn}": accept(name=name)},
            request_state=asked(outcome).request_state,
        )
    assert json.loads(text_of(outcome)) == ["a", "b", "c"]


async def test_a_round_without_state_is_answered_without_state(
    playground: HttpBinding, recorder: Recorder
) -> None:
    assert asked(await recorder.perform(playground, "no_state")).request_state is None
    done = await recorder.perform(playground, "no_state", input_responses={"name": accept(name="Ada")})
    assert json.loads(text_of(done))["state"] is None


async def test_a_round_may_ask_nothing_and_only_want_its_state_back(
    playground: HttpBinding, recorder: Recorder
) -> None:
    outcome = await recorder.perform(playground, "state_only")
    for _ in range(2):
        assert asked(outcome).requests == {}
        outcome = await recorder.perform(playground, "state_only", request_state=asked(outcome).request_state)
    assert text_of(outcome) == "ready"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_declined_request_reaches_the_server_without_content(
    playground: HttpBinding, recorder: Recorder, action: Any
) -> None:
    declined = answer_to_wire(Answer(action=action, content={"name": "ignored"}))
    done = await recorder.perform(playground, "no_state", input_responses={"name": declined})
    assert json.loads(text_of(done))["answer"] == {"action": action}


async def test_a_prompt_may_ask_before_it_is_given(playground: HttpBinding, recorder: Recorder) -> None:
    assert set(asked(await recorder.perform(playground, "greeting", kind="prompt")).requests) == {"name"}
    done = await recorder.perform(
        playground, "greeting", kind="prompt", input_responses={"name": accept(name="Ada")}
    )
    assert isinstance(done, Completed)
    assert done.raw["messages"][0]["content"]["text"] == "Hello Ada"


async def test_a_resource_may_ask_before_it_is_read(playground: HttpBinding, recorder: Recorder) -> None:
    assert set(asked(await recorder.perform(playground, "notes://monday", kind="resource")).requests) == {
        "name"
    }
    done = await recorder.perform(
        playground, "notes://monday", kind="resource", input_responses={"name": accept(name="Ada")}
    )
    assert isinstance(done, Completed)
    assert done.raw["contents"][0]["text"] == "monday: Ada"


async def test_another_process_of_the_server_continues_what_the_first_one_asked(recorder: Recorder) -> None:
    server = module("tests.servers.playground", M3_STATE_KEY=STATE_KEY)
    first = asked(await recorder.perform(server, "three_rounds"))
    second = await recorder.perform(
        server,
        "three_rounds",
        saved=first.negotiated,
        input_responses={"q0": accept(name="a")},
        request_state=first.request_state,
    )
    assert set(asked(second).requests) == {"q1"}


async def test_a_server_that_forgot_its_key_refuses_its_own_state(recorder: Recorder) -> None:
    server = module("tests.servers.playground")
    first = asked(await recorder.perform(server, "three_rounds"))
    second = await recorder.perform(
        server,
        "three_rounds",
        saved=first.negotiated,
        input_responses={"q0": accept(name="a")},
        request_state=first.request_state,
    )
    assert isinstance(second, StateRefused)


async def test_changed_arguments_do_not_fit_the_state(playground: HttpBinding, recorder: Recorder) -> None:
    first = asked(await recorder.perform(playground, "three_rounds"))
    other = await recorder.perform(
        playground, "three_rounds", {"sneaky": 1}, request_state=first.request_state, input_responses={}
    )
    assert isinstance(other, StateRefused)


async def test_a_stored_round_of_a_server_that_went_back_a_generation_starts_again(
    recorder: Recorder,
) -> None:
    outcome = await recorder.perform(
        raw("legacy"), "asks", request_state="s", input_responses={"k": accept()}
    )
    assert isinstance(outcome, StateRefused)
    assert recorder.journal == []


async def test_answers_and_arguments_go_over_the_wire_as_they_are(recorder: Recorder) -> None:
    answer = accept(deep={"n": None}, list=[1, None])
    await recorder.perform(
        raw("modern"), "echo_params", {"a": None, "b": {"c": None}}, input_responses={"k:1": answer}
    )
    sent = recorder.journal[0][3]
    assert sent["arguments"] == {"a": None, "b": {"c": None}}
    assert sent["inputResponses"] == {"k:1": answer}


async def test_a_form_is_handed_on_verbatim_however_odd_its_schema(recorder: Recorder) -> None:
    request = asked(await recorder.perform(raw("modern"), "nested")).requests["f"]
    assert isinstance(request, FormRequest)
    assert request.message == "<script>alert('hi')</script>"
    assert request.schema["x-vendor"] is True
    assert request.schema["properties"]["deep"]["properties"]["n"] == {"type": "null"}
    assert request.meta == {"vendor": 1}


@pytest.mark.parametrize(
    ("tool", "code", "words"),
    [
        ("sampling", "unsupported_request", "sampling/createMessage"),
        ("roots", "unsupported_request", "roots/list"),
        ("hologram_mode", "unsupported_request", "neither form nor URL"),
        ("script_url", "protocol_error", "not a web address"),
        ("number_url", "protocol_error", "not a web address"),
        ("no_schema", "protocol_error", "without a schema"),
        ("nothing_asked", "protocol_error", "neither a request nor a state"),
    ],
)
async def test_a_round_that_cannot_be_asked_fails_with_a_reason(
    recorder: Recorder, tool: str, code: str, words: str
) -> None:
    outcome = await recorder.perform(raw("modern"), tool)
    assert isinstance(outcome, Failed)
    assert outcome.code == code
    assert words in outcome.message
    assert outcome.answered
    assert not outcome.outcome_unknown
