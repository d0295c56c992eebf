"""Our MCP client as one program: `python -m tests.conformance.client URL`, started by the conformance runner.

It works as a worker does. One look at the server; what it negotiated is saved as JSON. Then one connection per
leg of every call: a call that asks for input is parked, all others are begun, and only then it is resumed. Forms
are answered as our page would answer them if a person accepted them untouched. Any other outcome than a
completed, well-formed result ends the program with an error.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from approvals.form_values import Raw, read, untouched
from approvals.schema_form import form_fields
from runs.mcp_client import (
    Answer,
    Completed,
    FormRequest,
    HttpBinding,
    InputRequired,
    Inspection,
    Operation,
    Outcome,
    Request,
    answer_to_wire,
    inspect,
    perform,
)

SECONDS = 20.0
"""What one look, or one leg, may take."""

MAX_LEGS = 10
SAMPLES: Mapping[str, Any] = {"string": "sample", "number": 2.5, "integer": 2, "boolean": True}
Plan = Callable[[Inspection], Iterator[Operation]]


class Unexpected(Exception):
    """The scenario's server led somewhere a conforming pair would not go."""


# --- what to do with a server -----------------------------------------------------------------------------


def everything(found: Inspection) -> Iterator[Operation]:
    """Every tool with sample arguments, every prompt, every resource."""
    for tool in found.tools:
        yield call(found, tool.name, samples(tool.input_schema))
    for prompt in found.prompts:
        yield Operation(kind="prompt", name=prompt.name)
    for resource in found.resources:
        yield Operation(kind="resource", name=resource.uri)


def nothing_more(_: Inspection) -> Iterator[Operation]:
    """The look was all: this scenario's server answers to nothing but listings."""
    yield from ()


def echo_of_a_schema(found: Inspection) -> Iterator[Operation]:
    """Hand the schema that we keep of the rich tool to the tool that echoes one."""
    rich = next(tool for tool in found.tools if tool.name == "json_schema_2020_12_tool")
    yield call(found, "json_schema_echo", {"schema": rich.input_schema})


def calls_of_the_context(found: Inspection) -> Iterator[Operation]:
    """The calls that the scenario hands over."""
    for item in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        yield call(found, item["name"], item["arguments"])


PLANS: Mapping[str, Plan] = {
    "json-schema-ref-no-deref": nothing_more,
    "json-schema-2020-12-preservation": echo_of_a_schema,
    "http-custom-headers": calls_of_the_context,
}
"""By scenario; what is not named here gets everything."""


def call(found: Inspection, name: str, arguments: Mapping[str, Any]) -> Operation:
    definition = next(tool for tool in found.tools if tool.name == name)
    return Operation(kind="tool", name=name, arguments=arguments, definition=definition)


def samples(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each required argument."""
    properties = schema.get("properties", {})
    return {name: SAMPLES[properties[name]["type"]] for name in schema.get("required", [])}


# --- how to do it -----------------------------------------------------------------------------------------


async def main(url: str, plan: Plan) -> None:
    """Look, begin every operation, then resume the parked ones round by round. Raises Unexpected."""
    binding = HttpBinding(url=url, allow_private=True)
    found = await inspect(binding, timeout=SECONDS)
    saved = json.loads(json.dumps(found.negotiated))
    legs = list(plan(found))
    for _ in range(MAX_LEGS):
        parked = []
        for operation in legs:
            outcome = await leg(binding, operation, saved)
            if isinstance(outcome, InputRequired):
                parked.append(answered(operation, outcome))
            elif not isinstance(outcome, Completed) or outcome.problem or outcome.is_error:
                raise Unexpected(f"{operation.kind} {operation.name}: {outcome}")
        legs = parked
    if legs:
        raise Unexpected(f"still asked for input after {MAX_LEGS} legs: {legs}")


async def leg(binding: HttpBinding, operation: Operation, saved: Mapping[str, Any]) -> Outcome:
    """One leg on a connection of its own, reporting its session as a worker wants it reported."""
    return await perform(
        binding,
        operation,
        saved=saved,
        elicit=accept_untouched,
        journal=note,
        progress=note,
        timeout=SECONDS,
        on_session=note,
    )


def answered(operation: Operation, asked: InputRequired) -> Operation:
    """The next leg of an operation whose requests a person has accepted."""
    answers = {key: answer_to_wire(untouched_answer(request)) for key, request in asked.requests.items()}
    return replace(operation, input_responses=answers, request_state=asked.request_state)


async def accept_untouched(request: Request) -> Answer:
    return untouched_answer(request)


def untouched_answer(request: Request) -> Answer:
    """What our page sends when a person accepts its form without touching it. Raises Unexpected."""
    if not isinstance(request, FormRequest):
        raise Unexpected(f"no scenario asks for a URL: {request}")
    fields = form_fields(request.schema)
    posted: Raw = {}
    for field in fields:
        posted.update(untouched(field))
    reading = read(request.schema, fields, posted)
    if reading.content is None:
        raise Unexpected(f"the form cannot be sent untouched: {reading}")
    return Answer(action="accept", content=reading.content)


async def note(*_: object) -> None:
    """A worker would store it."""


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], PLANS.get(os.environ["MCP_CONFORMANCE_SCENARIO"], everything)))
