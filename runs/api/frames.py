"""What a client of the event stream reads: a run's events as frames, in the words of m8tes (m8tes-http 6).

Plain module: events and what they refer to come in as values, frames go out as objects that `json.dumps` accepts.
Read again from the start, the same events give the same frames; only a question then has its answers beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from runs.run_states import Outcome

Json = Any
Frame = dict[str, Json]

MAX_DELTA: Final = 16_000
"""Characters of text in one frame; longer text comes in several."""

MAX_RESULT: Final = 100_000
"""Characters of a result as JSON; of a longer one the stream shows the beginning, the journal keeps all."""

AGENT_TOOL: Final = "Agent"
"""The tool name of a run that a run starts."""

RESULTS: Final = frozenset(
    {
        "tool_call.result",
        "tool_call.failed",
        "tool_call.denied",
        "question.settled",
        "question.auto_resolved",
        "plan.settled",
        "child.refused",
    }
)
"""Events after which their step has its result."""

BEGINNINGS: Final = frozenset({"tool_call.allowed", "child.started"})
"""Events with which a call may be heard of first, beside its request and its result."""

ENDS: Final = frozenset(f"run.{outcome.value}" for outcome in Outcome)


class Request(Protocol):
    """A key of a pause, as `runs.asked` has it."""

    @property
    def request_id(self) -> str: ...
    @property
    def tool_use_id(self) -> str | None: ...
    @property
    def tool_name(self) -> str: ...
    @property
    def tool_input(self) -> Mapping[str, Json] | None: ...
    @property
    def status(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Call:
    """A step that counts as a tool call. `step` is its number within the run, `result` its outcome once it has one."""

    id: str
    step: int
    name: str
    arguments: Json
    result: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One event with what it refers to; `requests` are those of its pause."""

    seq: int
    type: str
    payload: Mapping[str, Json]
    call: Call | None = None
    requests: Sequence[Request] = ()


class Framer:
    """Frames of one reader, who gets every event once and in order."""

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id
        self.children: set[int] = set()
        """Steps that started a run whose end the reader has not heard of: no event of this run tells of it."""
        self._started: set[int] = set()
        self._last_text: str | None = None

    def frames(self, happening: Happening, *, last_turn: int) -> Iterator[Frame]:
        """The frames of one event. `last_turn` is the newest turn's index: the end of an earlier one ends nothing."""
        type_, payload, call = happening.type, happening.payload, happening.call
        if type_ == "agent.say":
            yield from self._text(f"text_{happening.seq}", str(payload["text"]))
        elif type_ in ENDS:
            yield from self._turn_over(happening, last_turn)
        elif type_.endswith(".request"):
            yield from self._start(call)
            yield from (_gate("permission_request", request) for request in happening.requests)
        elif _resolves(type_):
            yield from (_resolved(request, payload) for request in happening.requests)
        elif call is not None and type_ in BEGINNINGS | RESULTS:
            yield from self._start(call)
            if type_ == "child.started":
                self.children.add(call.step)
                yield from self.child_ended(call)
            elif type_ in RESULTS:
                yield from _result(call)

    def child_ended(self, call: Call) -> Iterator[Frame]:
        """The result of a run that this run started; nothing while there is none."""
        if call.result is not None:
            self.children.discard(call.step)
            yield from _result(call)

    def _text(self, id_: str, text: str) -> Iterator[Frame]:
        self._last_text = text
        yield {"type": "text-start", "id": id_}
        for piece in _pieces(text):
            yield {"type": "text-delta", "id": id_, "delta": piece}
        yield {"type": "text-end", "id": id_}

    def _start(self, call: Call | None) -> Iterator[Frame]:
        """The call as it was proposed, when something is first heard of it."""
        if call is None or call.step in self._started:
            return
        self._started.add(call.step)
        yield {"type": "tool-call-start", "toolCallId": call.id, "toolName": call.name}
        for piece in _pieces(json.dumps(call.arguments)):
            yield {"type": "tool-call-delta", "toolCallId": call.id, "delta": piece}
        yield {"type": "tool-call-end", "toolCallId": call.id}

    def _turn_over(self, happening: Happening, last_turn: int) -> Iterator[Frame]:
        """How the turn ended. Only the last one ends the stream: after a terminal frame clients stop listening."""
        payload, outcome = happening.payload, Outcome(happening.type.removeprefix("run."))
        output = payload.get("output")
        if output and output != self._last_text:
            yield from self._text(f"text_{happening.seq}", str(output))
        self._last_text = None
        if payload.get("turn") != last_turn:
            return
        if outcome is Outcome.CANCELLED:
            yield {"type": "cancelled", "run_id": self.run_id}
            return
        completed = outcome is Outcome.COMPLETED
        if not completed:
            yield {"type": "error", "error": payload.get("error"), "error_code": payload.get("error_code")}
        state = "completed" if completed else "failed"
        yield {"type": "done", "completion_state": state, "stop_reason": outcome.value}


def metadata(run_id: int) -> Frame:
    """The first frame of every stream."""
    return {"type": "metadata", "run_id": run_id}


def replay_complete() -> Frame:
    """Everything before this has happened when the reader came; what follows is live."""
    return {"type": "replay_complete"}


def awaiting(requests: Sequence[Request]) -> Iterator[Frame]:
    """The run goes on only when somebody decides one of these; the last frames before the server ends the response.

    They come again although each was announced when it opened: text or another decision since then would make a client
    believe that nothing is open any more.
    """
    for request in requests:
        yield _gate("awaiting_approval", request)


def line(frame: Frame) -> bytes:
    """A frame on the wire. ASCII only: some readers also end a line at U+0085 or U+2028 (m8tes-http 8.5)."""
    return f"data: {json.dumps(frame)}\n\n".encode("ascii")


KEEPALIVE: Final = b": keepalive\n\n"


def _gate(type_: str, request: Request) -> Frame:
    return {
        "type": type_,
        "request_id": request.request_id,
        "tool_use_id": request.tool_use_id,
        "tool_name": request.tool_name,
        "tool_input": request.tool_input,
    }


def _resolved(request: Request, payload: Mapping[str, Json]) -> Frame:
    """`remembered` is what was stored by then; a later event can raise it (m8tes-http 6)."""
    return {
        "type": "permission_resolved",
        "request_id": request.request_id,
        "tool_use_id": request.tool_use_id,
        "tool_name": request.tool_name,
        "resolved_status": request.status,
        "remembered": bool(payload.get("remembered", False)),
    }


def _resolves(type_: str) -> bool:
    """A pause ended. An approval tells of it by `permission_resolved`, which knows what was remembered."""
    if type_ in ("permission_resolved", "round.failed"):
        return True
    return type_.endswith(".response") and type_ != "approval.response"


def _result(call: Call) -> Iterator[Frame]:
    result = call.result or {}
    yield {
        "type": "tool-result-end",
        "toolCallId": call.id,
        "result": _bounded(_value(result)),
        "isError": result.get("status") in ("failed", "denied", "cancelled"),
    }


def _value(result: Mapping[str, Json]) -> Json:
    """What the agent got: the value itself, or for anything but success how it ended and why."""
    if "answers" in result:
        return {"answers": result["answers"]}
    if result.get("status") == "done":
        return result.get("result")
    return {name: value for name, value in result.items() if value is not None}


def _bounded(value: Json) -> Json:
    text = json.dumps(value)
    if len(text) <= MAX_RESULT:
        return value
    return {"truncated": True, "characters": len(text), "beginning": text[:MAX_RESULT]}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), MAX_DELTA):
        yield text[start : start + MAX_DELTA]
