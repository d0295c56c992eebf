"""An MCP server of both generations with one tool per behaviour that a client must cope with.

`python -m tests.servers.playground` on stdio, or `--http PORT`. A client that opens with the handshake gets
the older generation. Environment: M3_STATE_KEY (hex) seals request state; without it each process has its own
key. M3_EFFECTS names a file that gets one JSON line per noteworthy event. With M3_NO_EVENTS it keeps nothing for a
client that comes back.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from mcp import MCPError, UrlElicitationRequiredError
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http import EventCallback, EventId, EventMessage, EventStore, StreamId
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    JSONRPCMessage,
    TextContent,
)

from m3web.demo_servers import http_port, record_effect

STATE_KEY = os.environ.get("M3_STATE_KEY")
server = MCPServer(
    "playground",
    version="0.9",
    instructions="Every tool does one odd thing.",
    request_state_security=RequestStateSecurity(keys=[bytes.fromhex(STATE_KEY)]) if STATE_KEY else None,
    log_level="ERROR",
)
Asked = CallToolResult | InputRequiredResult


def text(value: Any) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=value if isinstance(value, str) else json.dumps(value))]
    )


def form(message: str, properties: dict[str, Any], required: list[str]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": required}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def got(context: Context) -> dict[str, dict[str, Any]]:
    responses = context.input_responses or {}
    return {key: value.model_dump(exclude_none=True) for key, value in responses.items()}


NAME_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}},
    "required": ["name"],
}
ASK_NAME = form("Your name?", NAME_SCHEMA["properties"], ["name"])


@server.tool()
async def echo(value: str) -> str:
    record_effect("echo", value=value)
    return value


# --- 2026-07-28: rounds -----------------------------------------------------------------------------------


@server.tool()
async def many_keys(context: Context) -> Asked:
    """Asks a form, a choice and a URL in one round, and again for those that are missing."""
    answers = json.loads(context.request_state or "{}") | got(context)
    choice = {"size": {"type": "string", "enum": ["s", "m"]}}
    wanted = {
        "name": ASK_NAME,
        "a:choice": form("Size?", choice, ["size"]),
        "pay": ElicitRequest(params=ElicitRequestURLParams(message="Pay", url="https://pay.example/1")),
    }
    missing = {key: request for key, request in wanted.items() if key not in answers}
    if missing:
        return InputRequiredResult(input_requests={**missing}, request_state=json.dumps(answers))
    return text(answers)


@server.tool()
async def three_rounds(context: Context) -> Asked:
    seen = json.loads(context.request_state or "[]") + [
        answer["content"]["name"] for answer in got(context).values()
    ]
    record_effect("three_rounds", seen=seen)
    if len(seen) < 3:
        return InputRequiredResult(input_requests={f"q{len(seen)}": ASK_NAME}, request_state=json.dumps(seen))
    return text(seen)


@server.tool()
async def no_state(context: Context) -> Asked:
    if not got(context):
        return InputRequiredResult(input_requests={"name": ASK_NAME})
    return text({"state": context.request_state, "answer": got(context)["name"]})


@server.tool()
async def sign(context: Context) -> Asked:
    """Asks for a name and signs with it."""
    if not got(context):
        return InputRequiredResult(input_requests={"name": ASK_NAME}, request_state="unsigned")
    record_effect("sign", answer=got(context)["name"])
    return text("signed")


@server.tool()
async def state_only(context: Context) -> Asked:
    """Wants to be called again twice before it has its result."""
    turn = int(context.request_state or 0)
    return text("ready") if turn == 2 else InputRequiredResult(request_state=str(turn + 1))


@server.prompt()
async def greeting(context: Context) -> str | InputRequiredResult:
    if not got(context):
        return InputRequiredResult(input_requests={"name": ASK_NAME})
    return f"Hello {got(context)['name']['content']['name']}"


@server.resource("notes://{day}")
async def notes(day: str, context: Context) -> str | InputRequiredResult:
    if not got(context):
        return InputRequiredResult(input_requests={"name": ASK_NAME})
    return f"{day}: {got(context)['name']['content']['name']}"


# --- 2025-11-25: prompts on the open session --------------------------------------------------------------


async def ask(context: Context, message: str) -> ElicitResult:
    return await context.session.elicit_form(message, NAME_SCHEMA, related_request_id=context.request_id)


@server.tool()
async def ask_in_turn(times: int, context: Context, tag: str = "") -> str:
    record_effect("ask_in_turn began", tag=tag)
    answers = [(await ask(context, f"Question {n}")).model_dump(exclude_none=True) for n in range(times)]
    record_effect("ask_in_turn", answers=answers, tag=tag)
    return json.dumps(answers)


@server.tool()
async def ask_at_once(context: Context) -> str:
    left, right = await asyncio.gather(ask(context, "left"), ask(context, "right"))
    return json.dumps([left.content, right.content])


@server.tool()
async def ask_url(url: str, context: Context) -> str:
    """Sends a person to `url`, and says that they are done if they agreed."""
    answer = await context.session.elicit_url("Connect", url, "e-1", related_request_id=context.request_id)
    if answer.action == "accept":
        await context.session.send_elicit_complete("e-1", related_request_id=context.request_id)
    return answer.action


@server.tool()
async def ask_or_say_why(context: Context) -> str:
    try:
        return (await ask(context, "May I?")).action
    except MCPError as error:
        return f"refused: {error.code} {error.message}"


@server.tool()
async def needs_url(tag: str) -> str:
    """Error -32042 on the first call with a tag, then a result."""
    if not os.path.exists(marker := f"{os.environ['M3_EFFECTS']}.{tag}"):
        open(marker, "w").close()
        wanted = ElicitRequestURLParams(
            message="Log in first", url="https://id.example/x", elicitation_id="e-2"
        )
        raise UrlElicitationRequiredError([wanted])
    return "logged in"


# --- either: time, death, size ----------------------------------------------------------------------------


@server.tool()
async def counts(context: Context) -> str:
    for step in range(1, 4):
        await context.report_progress(step, 3, f"step {step}")
    return "counted"


@server.tool()
async def slow(tag: str) -> str:
    """Runs until it is cancelled, and records that it was."""
    record_effect("slow started", tag=tag)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        record_effect("slow cancelled", tag=tag)
        raise
    return "slept"


@server.tool()
async def haul(until: str, tag: str) -> str:
    """At work until there is a file named `until`."""
    record_effect("haul began", tag=tag)
    while not os.path.exists(until):
        await asyncio.sleep(0.05)
    record_effect("haul", tag=tag)
    return "hauled"


@server.tool()
async def large(megabytes: float) -> CallToolResult:
    return text("x" * int(megabytes * 1_000_000))


@server.tool()
async def fails() -> str:
    raise ToolError("the disk is full")


class Events(EventStore):
    """Numbers the events, so that clients get resumption tokens, and repeats those of one stream."""

    def __init__(self) -> None:
        self.stored: list[tuple[StreamId, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        self.stored.append((stream_id, message))
        return str(len(self.stored))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        last = int(last_event_id)
        stream = self.stored[last - 1][0]
        for number, (stream_id, message) in enumerate(self.stored[last:], last + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def main() -> None:
    port = http_port("Playground MCP server for tests.")
    if port is None:
        server.run("stdio")
    else:
        store = None if os.environ.get("M3_NO_EVENTS") else Events()
        server.run("streamable-http", host="127.0.0.1", port=port, event_store=store)


if __name__ == "__main__":
    main()
