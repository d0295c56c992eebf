"""What the client uses of the SDK beyond its promise, and the texts of the SDK that it recognises."""

from __future__ import annotations

import inspect as python_inspect
from pathlib import Path

import mcp.client.streamable_http as streamable_http
import mcp.shared.jsonrpc_dispatcher as jsonrpc_dispatcher
from mcp.shared import inbound
from mcp.shared.dispatcher import CallOptions

from runs.mcp_client import failures


def test_the_dispatcher_has_the_two_methods_that_ours_overrides() -> None:
    base = jsonrpc_dispatcher.JSONRPCDispatcher
    sending = list(python_inspect.signature(base.send_raw_request).parameters)
    assert sending == ["self", "method", "params", "opts", "_related_request_id"]
    running = list(python_inspect.signature(base.run).parameters)
    assert running == ["self", "on_request", "on_notify", "on_notify_intercept", "task_status"]


def test_a_request_may_have_an_id_headers_and_a_resumption_callback_of_ours() -> None:
    assert {"request_id", "headers", "on_resumption_token"} <= set(CallOptions.__annotations__)


def test_the_sdks_own_texts_for_lost_connections_and_statuses_are_still_these() -> None:
    transport = Path(python_inspect.getfile(streamable_http)).read_text()
    dispatcher = Path(python_inspect.getfile(jsonrpc_dispatcher)).read_text()
    for text in (*failures._STATUS_STANDINS, *failures._LOST_STREAM, *failures._NOT_MCP):
        assert text in transport
    assert '"Connection closed"' in dispatcher


def test_the_header_helpers_are_still_there() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    assert inbound.find_invalid_x_mcp_header(schema) is None
    assert inbound.mcp_param_headers(inbound.x_mcp_header_map(schema), {"a": "1"}) == {"Mcp-Param-A": "1"}
