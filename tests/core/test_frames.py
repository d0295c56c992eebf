"""Events of a run become frames of its stream (`runs.api.frames`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from runs.api import frames
from runs.api.frames import Call, Frame, Framer, Happening


@dataclass(frozen=True, kw_only=True)
class Asked:
    request_id: str = "r1"
    tool_use_id: str | None = "call_7_1"
    tool_name: str = "desk:send_email"
    tool_input: Mapping[str, Any] | None = None
    status: str = "pending"


def call(step: int = 1, result: Mapping[str, Any] | None = None, **fields: Any) -> Call:
    return Call(
        **{"id": f"call_7_{step}", "step": step, "name": "desk:send_email", "arguments": {"to": "ann"}, **fields},
        result=result,
    )  # fmt: skip


def of(*happenings: Happening, last_turn: int = 0, framer: Framer | None = None) -> list[Frame]:
    reader = framer or Framer(7)
    return [frame for happening in happenings for frame in reader.frames(happening, last_turn=last_turn)]


def happening(type_: str, seq: int = 1, payload: Mapping[str, Any] | None = None, **more: Any) -> Happening:
    return Happening(seq=seq, type=type_, payload=payload or {}, **more)


def end(outcome: str, turn: int = 0, **payload: Any) -> Happening:
    facts = {"turn": turn, "output": None, "error": None, "error_code": None, **payload}
    return happening(f"run.{outcome}", 9, facts)


def types(made: list[Frame]) -> list[str]:
    return [frame["type"] for frame in made]


def test_what_an_agent_says_is_a_text() -> None:
    assert of(happening("agent.say", 4, {"text": "Hello."})) == [
        {"type": "text-start", "id": "text_4"},
        {"type": "text-delta", "id": "text_4", "delta": "Hello."},
        {"type": "text-end", "id": "text_4"},
    ]


def test_a_long_text_comes_in_pieces_that_are_the_text() -> None:
    text = "x" * (frames.MAX_DELTA * 2 + 1)
    deltas = [
        frame["delta"] for frame in of(happening("agent.say", payload={"text": text})) if "delta" in frame
    ]
    assert [len(delta) for delta in deltas] == [frames.MAX_DELTA, frames.MAX_DELTA, 1]
    assert "".join(deltas) == text


def test_an_allowed_call_starts_once_and_ends_with_its_result() -> None:
    done = call(result={"status": "done", "result": {"id": 3}, "error": None})
    made = of(
        happening("tool_call.allowed", 2, call=call()),
        happening("tool_call.sent", 3, call=call()),
        happening("tool_call.result", 4, call=done),
    )
    assert types(made) == ["tool-call-start", "tool-call-delta", "tool-call-end", "tool-result-end"]
    assert {frame["toolCallId"] for frame in made} == {"call_7_1"}
    assert made[0]["toolName"] == "desk:send_email"
    assert json.loads(made[1]["delta"]) == {"to": "ann"}
    assert (made[3]["result"], made[3]["isError"]) == ({"id": 3}, False)


def test_read_again_from_the_start_a_result_that_is_there_already_still_comes_in_its_place() -> None:
    done = call(result={"status": "done", "result": 1, "error": None})
    made = of(happening("tool_call.allowed", 2, call=done), happening("tool_call.result", 4, call=done))
    assert types(made).count("tool-result-end") == 1
    assert types(made)[-1] == "tool-result-end"


@pytest.mark.parametrize("status", ["failed", "denied", "cancelled"])
def test_a_call_that_did_not_succeed_says_how_and_why(status: str) -> None:
    event = "tool_call.denied" if status == "denied" else "tool_call.failed"
    result = {"status": status, "result": None, "error": "Not before Monday."}
    made = of(happening(event, 2, call=call(result=result)))
    assert made[-1]["result"] == {"status": status, "error": "Not before Monday."}
    assert made[-1]["isError"] is True


def test_a_result_that_is_too_long_is_cut_and_says_so() -> None:
    result = {"status": "done", "result": "x" * frames.MAX_RESULT, "error": None}
    shown = of(happening("tool_call.result", 2, call=call(result=result)))[-1]["result"]
    assert (shown["truncated"], shown["characters"]) == (True, frames.MAX_RESULT + 2)
    assert len(shown["beginning"]) == frames.MAX_RESULT


def test_a_pause_announces_its_call_and_each_of_its_requests() -> None:
    asked = (
        Asked(request_id="r1:cover"),
        Asked(request_id="r1:terms", tool_input={"url": "https://x.example"}),
    )
    made = of(happening("elicitation.request", 2, call=call(), requests=asked))
    assert types(made) == ["tool-call-start", "tool-call-delta", "tool-call-end", *["permission_request"] * 2]
    assert made[-1] == {
        "type": "permission_request",
        "request_id": "r1:terms",
        "tool_use_id": "call_7_1",
        "tool_name": "desk:send_email",
        "tool_input": {"url": "https://x.example"},
    }


@pytest.mark.parametrize(
    ("event", "payload", "remembered"),
    [
        ("permission_resolved", {"remembered": True}, True),
        ("permission_resolved", {"remembered": False}, False),
        ("question.response", {}, False),
        ("elicitation.response", {}, False),
        ("round.failed", {}, False),
    ],
)
def test_the_end_of_a_pause_is_one_frame_with_its_status(
    event: str, payload: dict[str, Any], remembered: bool
) -> None:
    (made,) = of(happening(event, 3, payload, requests=[Asked(status="allowed")]))
    assert (made["type"], made["request_id"]) == ("permission_resolved", "r1")
    assert (made["resolved_status"], made["remembered"]) == ("allowed", remembered)


def test_an_approval_is_told_of_by_its_resolution_alone() -> None:
    assert of(happening("approval.response", 3, requests=[Asked()])) == []


def test_questions_and_their_answers_are_a_call_with_a_result() -> None:
    answers = {"Which?": "one"}
    asked = call(
        name="AskUserQuestion", arguments={"questions": []}, result={"status": "done", "answers": answers}
    )
    made = of(happening("question.auto_resolved", 2, call=asked))
    assert types(made)[0] == "tool-call-start"
    assert made[-1]["result"] == {"answers": answers}


def test_the_last_words_come_before_done() -> None:
    made = of(end("completed", output="All sent."))
    assert types(made) == ["text-start", "text-delta", "text-end", "done"]
    assert made[-1] == {"type": "done", "completion_state": "completed", "stop_reason": "completed"}


def test_last_words_that_were_just_said_are_not_repeated() -> None:
    said = happening("agent.say", 2, {"text": "All sent."})
    assert types(of(said, end("completed", output="All sent."))).count("text-delta") == 1


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "interrupted"])
def test_a_failure_is_an_error_with_its_code_and_then_done(outcome: str) -> None:
    error, done = of(end(outcome, error="No.", error_code="agent_failed"))
    assert error == {"type": "error", "error": "No.", "error_code": "agent_failed"}
    assert (done["type"], done["completion_state"]) == ("done", "failed")


def test_a_cancelled_run_ends_with_its_id() -> None:
    assert of(end("cancelled")) == [{"type": "cancelled", "run_id": 7}]


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_the_end_of_a_turn_that_others_follow_ends_nothing(outcome: str) -> None:
    made = of(end(outcome, turn=0, output="First.", error="x", error_code="y"), last_turn=1)
    assert types(made) == ["text-start", "text-delta", "text-end"]


def test_a_run_under_this_one_is_a_call_whose_result_is_looked_for() -> None:
    framer = Framer(7)
    started = call(3, name=frames.AGENT_TOOL, arguments={"agent": "Helper", "message": "go"})
    assert "tool-result-end" not in types(of(happening("child.started", 2, call=started), framer=framer))
    assert framer.children == {3}

    ended = call(3, result={"status": "done", "result": "found", "error": None})
    (made,) = framer.child_ended(ended)
    assert (made["toolCallId"], made["result"], framer.children) == ("call_7_3", "found", set())


def test_events_that_mean_nothing_to_a_client_make_no_frame() -> None:
    assert (
        of(happening("run.mode"), happening("round.extended"), happening("tool_call.sent", call=call())) == []
    )


def test_a_frame_on_the_wire_is_one_line_of_ascii() -> None:
    raw = frames.line({"type": "text-delta", "delta": "né\u2028\u0085\n\ud800"})
    assert raw.isascii()
    assert raw.count(b"\n") == 2
    assert json.loads(raw.removeprefix(b"data: ")) == {
        "type": "text-delta",
        "delta": "né\u2028\u0085\n\ud800",
    }


def test_no_frame_has_the_key_that_clients_drop_frames_for() -> None:
    made = of(happening("approval.request", 2, call=call(), requests=[Asked()]), end("completed", output="x"))
    assert not [
        frame for frame in [*made, frames.metadata(7), frames.replay_complete()] if "subtype" in frame
    ]
