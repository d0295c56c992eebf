"""Local tools: async callables of the host's own Python code, offered to agents as `local:name` (A14).

Live, a tool that elicits continues in place and holds its worker. After a crash only that tool runs again, and
only if it was registered as replayable: its earlier prompts are then answered from what is stored.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from runs.canonical import NotJson, canonical_json
from runs.errors import ModelValidationError
from runs.mcp_client import (
    ELICITATION_KEY,
    MAX_RESULT_BYTES,
    Answer,
    Completed,
    Elicit,
    Failed,
    FailureCode,
    FormRequest,
    Outcome,
    Refusal,
)
from runs.mcp_client.clock import DeadlinePassedError, HumanClock, run_until
from runs.risk import Risk
from runs.schema_check import SchemaProblem, check_schema, validate

LOCAL = "local"
"""The server part of the names of local tools; no server row stands behind it."""

Function: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
F = TypeVar("F", bound=Function)


class NobodyToAskError(Exception):
    """The tool asked while human input is off; the run ends with human_input_required (A3)."""


@dataclass(frozen=True)
class LocalContext:
    """What a running local tool may do beside its own work."""

    _elicit: Elicit

    async def elicit(self, message: str, schema: Mapping[str, Any]) -> Answer:
        """Ask a person for a form and wait for the answer, which fits `schema` if its action is accept.

        Raises NobodyToAskError if nobody may be asked, ModelValidationError for a schema that is no form.
        """
        _check_form(schema)
        request = FormRequest(key=ELICITATION_KEY, message=message, schema=dict(schema))
        answer = await self._elicit(request)
        if isinstance(answer, Refusal):
            raise NobodyToAskError(answer.message)
        return answer


@dataclass(frozen=True, kw_only=True)
class LocalTool:
    """One registered tool. `risk` is the host's word about it; `replay` permits running it again after a crash."""

    name: str
    function: Function
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    risk: Risk = Risk.WRITE
    replay: bool = False


_registered: dict[str, LocalTool] = {}


def local_tool(
    name: str,
    *,
    description: str = "",
    input_schema: Mapping[str, Any] | None = None,
    risk: Risk = Risk.WRITE,
    replay: bool = False,
) -> Callable[[F], F]:
    """Register an async callable `function(context, **arguments)` as `local:name`; its result must be JSON.

    Raises ModelValidationError for a name that is taken, a function that is not async, a schema that is none.
    """

    def register(function: F) -> F:
        if not name.isidentifier() or name in _registered:
            raise ModelValidationError(f"A local tool needs a name of its own; {name!r} is none or is taken.")
        if not inspect.iscoroutinefunction(function):
            raise ModelValidationError(f"local:{name} must be an async function.")
        schema = dict(input_schema or {"type": "object"})
        _check_form(schema)
        _registered[name] = LocalTool(
            name=name,
            function=function,
            description=description or inspect.getdoc(function) or "",
            input_schema=schema,
            risk=risk,
            replay=replay,
        )
        return function

    return register


def forget(name: str) -> None:
    """Take a local tool out of the registry; calls that run already go on."""
    _registered.pop(name, None)


def find(name: str) -> LocalTool | None:
    return _registered.get(name)


def names() -> list[str]:
    """What this process offers, sorted."""
    return sorted(_registered)


async def perform(
    tool: LocalTool, arguments: Mapping[str, Any], *, elicit: Elicit, timeout: float
) -> Outcome:
    """Run a tool to its end. A person's time does not count against `timeout` (seconds).

    What the tool raises is its result, an error; running out of time leaves the outcome unknown.
    """
    clock = HumanClock(timeout)

    async def ask(request: Any) -> Answer | Refusal:
        with clock.paused():
            return await elicit(request)

    if wrong := _mistakes(tool, arguments):
        return _result({"error": f"The arguments do not fit local:{tool.name}: {wrong}"}, is_error=True)
    try:
        value = await run_until(tool.function(LocalContext(ask), **arguments), clock)
    except DeadlinePassedError:
        message = (
            f"local:{tool.name} did not end within {timeout:g} seconds. Whether it took effect is unknown."
        )
        return Failed(code=FailureCode.TIMEOUT, message=message, sent=True)
    except NobodyToAskError as error:
        return _result({"error": str(error)}, is_error=True)
    except Exception as error:  # the tool's own failure is the agent's to deal with
        return _result({"error": f"{type(error).__name__}: {error}"}, is_error=True)
    return _value(tool, value)


def _value(tool: LocalTool, value: Any) -> Outcome:
    try:
        size = len(canonical_json(value))
    except NotJson as error:
        return _result({"error": f"local:{tool.name} gave a result that is not JSON: {error}"}, is_error=True)
    if size > MAX_RESULT_BYTES:
        return _result({"error": f"local:{tool.name} gave a result of {size:,} characters."}, is_error=True)
    return _result(value, is_error=False)


def _result(value: Any, *, is_error: bool) -> Completed:
    """In the shape of an MCP result, so that journal, timeline and later steps treat all tools alike."""
    text = value["error"] if is_error else json.dumps(value, ensure_ascii=False)
    raw: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if not is_error:
        raw["structuredContent"] = {"result": value}
    return Completed(raw=raw, is_error=is_error, negotiated={})


def _mistakes(tool: LocalTool, arguments: Mapping[str, Any]) -> str:
    problems = validate(tool.input_schema, dict(arguments))
    return "; ".join(f"{'/'.join(map(str, problem.path))} {problem.message}".strip() for problem in problems)


def _check_form(schema: Any) -> None:
    try:
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            raise ModelValidationError("A form's schema describes an object.")
        check_schema(schema)
    except SchemaProblem as problem:
        raise ModelValidationError(f"The schema cannot be used: {problem}") from problem
