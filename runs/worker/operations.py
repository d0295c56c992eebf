"""What a stored call is to the client: where it goes to, and the operation with what is known of its tool."""

from __future__ import annotations

from typing import Any

from runs import local_tools
from runs.binding import binding_of, identity_of
from runs.errors import M3Error, NotFound
from runs.local_tools import LOCAL, LocalTool
from runs.mcp_client import Binding, Operation, ToolDefinition, answer_to_wire
from runs.models import Server, Tool, ToolCall
from runs.worker.requests_in import answer_of


def target(call: ToolCall) -> Binding | LocalTool:
    """What the call goes to. Raises M3Error with a sentence if it is not there any more."""
    if call.server_name == LOCAL:
        tool = local_tools.find(call.name)
        if tool is None:
            raise NotFound(f"{call.full_name} is not registered in the process that works on this run.")
        return tool
    if call.server is None:
        raise NotFound(f"The server {call.server_name} is gone. Add it again, or correct the playbook.")
    return binding_of(call.server)


def binding_if_any(call: ToolCall) -> Binding | None:
    """Where the call's server is, if it is still there; a session under a keeper is reached without it."""
    try:
        return binding_of(call.server) if call.server is not None else None
    except M3Error:
        return None


def operation(call: ToolCall) -> Operation:
    responses = call.wire.get("responses")
    wired = (
        {key: answer_to_wire(answer_of(response)) for key, response in responses.items()}
        if responses
        else None
    )
    kind: Any = call.operation
    return Operation(
        kind=kind,
        name=call.name,
        arguments=call.arguments,
        input_responses=wired,
        request_state=call.wire.get("request_state"),
        definition=_definition(call),
    )


def _definition(call: ToolCall) -> ToolDefinition | None:
    """The tool as it was last listed: spares a listing, and lets the result be checked against its schema."""
    tool = Tool.objects.filter(server=call.server_id, name=call.name, present=True).first()
    if call.operation != "tool" or tool is None:
        return None
    return ToolDefinition(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        digest=tool.digest,
    )


def identity(server: Server | None) -> str:
    """What the server is; as it was registered if its entry is gone by now."""
    try:
        return identity_of(server) if server is not None else ""
    except M3Error:
        return server.identity if server is not None else ""
