"""A stdio server that is nothing but lines of JSON: it says what no SDK would let a server say.

`python raw.py GENERATION [OPTION...]`, standard library only, so it starts in a moment. GENERATION is `modern`
or `legacy`; `legacy-exits` ends on a probe that it does not know, `legacy-mute` ignores it, `mute` ignores
everything. Options: `tools=FILE` lists the JSON array in FILE, `paged` sends it in pages of one,
`circular` never stops paging, `noise` prints a banner to stdout first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

generation, *options = sys.argv[1:]
listed = [json.loads(Path(o.partition("=")[2]).read_text()) for o in options if o.startswith("tools=")]
TOOLS = listed[0] if listed else [{"name": "x", "inputSchema": {"type": "object"}}]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    if effects := os.environ.get("M3_EFFECTS"):
        with open(effects, "a") as file:
            file.write(json.dumps({"what": "received", "message": message}) + "\n")
    return message


def elicit(params: Any, ask_id: Any = "ask-1") -> dict[str, Any]:
    """Ask on the open session and wait for the answer."""
    send(id=ask_id, method="elicitation/create", params=params)
    while True:
        message = receive()
        if message.get("id") == ask_id:
            return message


def elicit_often(times: int) -> list[dict[str, Any]]:
    """Ask many times at once and collect the answers; after the fifth, give the signal "five"."""
    for number in range(times):
        send(
            id=f"ask-{number}", method="elicitation/create", params={"message": "?", "requestedSchema": FORM}
        )
    replies: list[dict[str, Any]] = []
    while len(replies) < times:
        message = receive()
        if "method" not in message:
            replies.append(message)
        if len(replies) == 5:
            send(method="notifications/elicitation/complete", params={"elicitationId": "five"})
    return replies


def input_required(**requests: Any) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}


def url_request(url: Any) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Go", "url": url}}


RESULTS: dict[str, Any] = {
    "bare": {"content": [{"type": "text", "text": "no resultType"}]},
    "odd_content": {"resultType": "complete", "content": [{"type": "hologram"}], "extra": {"kept": None}},
    "no_content": {"resultType": "complete"},
    "task": {"resultType": "task", "taskId": "t-1"},
    "breaks_schema": {"resultType": "complete", "content": [], "structuredContent": {"count": "three"}},
    "forgets_schema": {"resultType": "complete", "content": []},
    "sampling": input_required(
        s={"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    ),
    "roots": input_required(r={"method": "roots/list"}),
    "script_url": input_required(u=url_request("javascript:alert(1)")),
    "number_url": input_required(u=url_request(7)),
    "no_schema": input_required(f={"method": "elicitation/create", "params": {"message": "?"}}),
    "hologram_mode": input_required(f={"method": "elicitation/create", "params": {"mode": "hologram"}}),
    "nothing_asked": {"resultType": "input_required"},
    "nested": input_required(
        f={
            "method": "elicitation/create",
            "params": {
                "message": "<script>alert('hi')</script>",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"deep": {"type": "object", "properties": {"n": {"type": "null"}}}},
                    "x-vendor": True,
                },
                "_meta": {"vendor": 1},
            },
        }
    ),
}
ERRORS: dict[str, Any] = {
    "out_of_stock": {"code": -32000, "message": "Out of stock <b>today</b>"},
    "bad_urls": {"code": -32042, "message": "URL first", "data": {"elicitations": "soon"}},
}


def call(request_id: Any, name: str, arguments: dict[str, Any]) -> None:
    if name in RESULTS:
        send(id=request_id, result=RESULTS[name])
    elif name in ERRORS:
        send(id=request_id, error=ERRORS[name])
    elif name == "echo_params":
        send(id=request_id, result={"resultType": "complete", "content": [], "structuredContent": arguments})
    elif name == "asks":
        send(id=request_id, result={"content": [], "structuredContent": elicit(arguments["params"])})
    elif name == "asks_in_turn":
        asked = range(1, arguments["times"] + 1)
        replies = [elicit({"message": f"Question {n}", "requestedSchema": FORM}, n)["result"] for n in asked]
        time.sleep(float(arguments.get("then", 0)))
        send(id=request_id, result={"content": [], "structuredContent": {"replies": replies}})
    elif name == "asks_again":
        send(id=1, method="elicitation/create", params={"message": "Question 1", "requestedSchema": FORM})
        time.sleep(float(arguments["after"]))
        send(method="notifications/cancelled", params={"requestId": 1})
        reply = elicit({"message": "Question 2", "requestedSchema": FORM}, 2)["result"]
        send(id=request_id, result={"content": [], "structuredContent": {"replies": [reply]}})
    elif name == "asks_and_hangs":
        elicit(arguments["params"])
    elif name == "asks_often":
        replies = elicit_often(arguments["times"])
        send(id=request_id, result={"content": [], "structuredContent": {"replies": replies}})
    elif name == "asks_then_dies":
        send(id="ask-1", method="elicitation/create", params={"message": "?", "requestedSchema": FORM})
        time.sleep(float(arguments.get("after", 0)))
        sys.exit(3)
    elif name == "dies":
        sys.stderr.write("Traceback\nRuntimeError: out of cheese\x1b[31m\n")
        sys.stderr.flush()
        sys.exit(3)
    elif name == "endless_line":
        for _ in range(1000):
            sys.stdout.write("x" * 100_000)
    elif name == "noisy":
        for _ in range(3):
            print("Still thinking...", flush=True)
    elif name != "hangs":
        send(id=request_id, error={"code": -32602, "message": f"Unknown tool: {name}"})


def list_tools(request_id: Any, params: dict[str, Any]) -> None:
    if "circular" in options:
        send(id=request_id, result={"resultType": "complete", "tools": TOOLS, "nextCursor": "again"})
    elif "paged" in options:
        at = int(params.get("cursor", 0))
        more = {"nextCursor": str(at + 1)} if at + 1 < len(TOOLS) else {}
        send(id=request_id, result={"resultType": "complete", "tools": TOOLS[at : at + 1], **more})
    else:
        send(id=request_id, result={"resultType": "complete", "tools": TOOLS})


def main() -> None:
    if "noise" in options:
        print("Starting up...\n\n{not json}")
    while True:
        message = receive()
        request_id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if request_id is None or generation == "mute":
            continue
        if method == "server/discover" and generation == "modern":
            capabilities = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            send(
                id=request_id,
                result={"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **capabilities},
            )
        elif method == "server/discover" and generation == "legacy-exits":
            sys.exit(1)
        elif method == "server/discover" and generation == "legacy-mute":
            continue
        elif method == "initialize" and generation != "modern":
            info = {"name": "raw", "version": "1"}
            send(
                id=request_id,
                result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info},
            )
        elif method == "tools/list":
            list_tools(request_id, params)
        elif method == "tools/call":
            call(request_id, params["name"], params.get("arguments") or {})
        else:
            send(id=request_id, error={"code": -32601, "message": "Method not found"})


main()
