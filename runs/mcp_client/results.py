"""From the answer to an operation to an Outcome. Pure, except that a schema check runs on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mcp import MCPError
from mcp_types import INVALID_PARAMS, URL_ELICITATION_REQUIRED

from runs.schema_check import SchemaProblem, validate

from . import task_wire
from .failures import failed_from
from .mapping import MAX_NAME, UnacceptableError, clip, requests_from_wire, urls_from_error
from .sessions import Attempt
from .values import (
    Completed,
    Failed,
    FailureCode,
    InputRequired,
    Json,
    Operation,
    Outcome,
    StateRefused,
    UrlsRequired,
)

_CONTENT_FIELD = {"tool": "content", "prompt": "messages", "resource": "contents"}


async def outcome_from_result(
    raw: Mapping[str, Json], operation: Operation, negotiated: Mapping[str, Json]
) -> Outcome:
    """What a result means. A completed operation stays completed however odd its result looks.

    A task is followed even if its server was not invited to answer with one: the call has begun all the same. As an
    answer to anything but a tool call it is none (SEP-2663).
    """
    kind = raw.get("resultType", "complete")
    if kind == "input_required" and "discover" in negotiated:
        return _input_required(raw, negotiated)
    if kind == task_wire.TASK and operation.kind == "tool" and "discover" in negotiated:
        return _task_started(raw, negotiated)
    if kind not in ("complete", "input_required"):
        name = clip(kind, MAX_NAME) or "unnamed"
        message = f"The server answered with a kind of result that is not offered here (“{name}”)."
        return Failed(code=FailureCode.PROTOCOL_ERROR, message=message, sent=True, answered=True)
    return await completed(raw, operation, negotiated)


async def completed(
    raw: Mapping[str, Json], operation: Operation, negotiated: Mapping[str, Json]
) -> Completed:
    """The final result of an operation, whatever its `resultType` claims to be."""
    return Completed(
        raw=raw,
        is_error=operation.kind == "tool" and raw.get("isError") is True,
        negotiated=negotiated,
        problem=await _problem(raw, operation),
    )


def outcome_from_error(
    error: MCPError, attempt: Attempt, negotiated: Mapping[str, Json], *, max_bytes: int
) -> Outcome:
    """What an error answer to the operation means."""
    if error.code == URL_ELICITATION_REQUIRED:
        try:
            return UrlsRequired(requests=urls_from_error(error.data), negotiated=negotiated)
        except UnacceptableError as problem:
            return unusable(problem)
    reason = error.data.get("reason") if isinstance(error.data, dict) else None
    if error.code == INVALID_PARAMS and reason == "invalid_request_state":
        return StateRefused(message="The server no longer accepts the state it gave. The call starts again.")
    failed = failed_from(error, attempt, max_bytes=max_bytes)
    if failed is None:
        raise error
    return failed


def unusable(problem: UnacceptableError) -> Failed:
    """The Failed for an answer that asks for something we cannot give."""
    code = FailureCode.UNSUPPORTED_REQUEST if problem.unsupported else FailureCode.PROTOCOL_ERROR
    return Failed(code=code, message=problem.message, sent=True, answered=True)


def _input_required(raw: Mapping[str, Json], negotiated: Mapping[str, Json]) -> Outcome:
    try:
        requests = requests_from_wire(raw)
    except UnacceptableError as problem:
        return unusable(problem)
    state = raw.get("requestState")
    return InputRequired(
        requests=requests, request_state=state if isinstance(state, str) else None, negotiated=negotiated
    )


def _task_started(raw: Mapping[str, Json], negotiated: Mapping[str, Json]) -> Outcome:
    try:
        return task_wire.started(raw, negotiated)
    except UnacceptableError as problem:
        # It says that it is at work, and there is no way to ask how that ended: not answered.
        return Failed(code=FailureCode.PROTOCOL_ERROR, message=problem.message, sent=True)


async def _problem(raw: Mapping[str, Json], operation: Operation) -> str | None:
    field = _CONTENT_FIELD[operation.kind]
    if not isinstance(raw.get(field), list):
        return f"The result has no list of {field}."
    schema = operation.definition.output_schema if operation.definition else None
    if schema is None or raw.get("isError") is True:
        return None
    if "structuredContent" not in raw:
        return "The tool promises structured content but sent none."
    return await asyncio.to_thread(_mismatch, schema, raw["structuredContent"])


def _mismatch(schema: Mapping[str, Json], value: Json) -> str | None:
    try:
        errors = validate(schema, value)
    except SchemaProblem as error:
        return f"The result cannot be checked: {clip(error.message, 500)}"
    if not errors:
        return None
    first = errors[0]
    where = ".".join(str(part) for part in first.path) or "the result"
    return f"The result does not match the tool's own output schema at {clip(where, 200)}: {first.message}"
