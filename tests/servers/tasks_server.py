"""A server that answers every tool call with a task (SEP-2663), well-behaved or not; standard library only.

`python -m tests.servers.tasks_server` on stdio, or `--http PORT`. M3_TASKS names the file in which the tasks are
kept, so that a restarted server knows them; M3_EFFECTS a file that gets one JSON line for every task begun, every
update, every cancellation and every look. A client that did not declare the extension, or that routes a request
about a task to another name, is refused.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from m3web.demo_servers import http_port, record_effect

EXTENSION = "io.modelcontextprotocol/tasks"
STORE = Path(os.environ.get("M3_TASKS", "tasks.json"))
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
Task = dict[str, Any]
LATE = 5.0
"""Seconds that some acknowledgements take; whoever waits for one can be ended meanwhile."""


def form(message: str, schema: Any = NAME) -> dict[str, Any]:
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def page(url: str) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Agree", "url": url}}


def done(value: Any, **extra: Any) -> dict[str, Any]:
    return {
        "status": "completed",
        "result": {"content": [{"type": "text", "text": json.dumps(value)}], **extra},
    }


def asking(task: Task, *rounds: dict[str, Any]) -> dict[str, Any]:
    """What is missing of the first round that is not complete; done after the last."""
    for wanted in rounds:
        missing = {key: request for key, request in wanted.items() if key not in task["answers"]}
        if missing:
            return {"status": "input_required", "inputRequests": missing}
    return done(task["answers"])


def age(task: Task) -> float:
    return time.time() - float(task["created"])


def report(task: Task) -> dict[str, Any]:
    seconds = task["arguments"].get("seconds", 0.5)
    if age(task) < seconds:
        return {"status": "working", "statusMessage": f"page {int(age(task) * 10)}"}
    return done("the report")


def travel(task: Task) -> dict[str, Any]:
    first = {"name": form("Who travels?"), "terms": page("https://terms.example/1")}
    return asking(task, first, {"seat:1": form("Which seat?", {**NAME, "required": []})})


def slow_to_listen(task: Task) -> dict[str, Any]:
    """Shows its question for a moment longer than it wants an answer; the extension permits it."""
    if "name" in task["answers"] and age(task) - task["answered_at"] < 0.6:
        return {"status": "input_required", "inputRequests": {"name": form("Who?")}}
    return asking(task, {"name": form("Who?")})


def changes_its_mind(task: Task) -> dict[str, Any]:
    """Wants an answer, but goes on without it after a while."""
    return asking(task, {"name": form("Who?")}) if age(task) < 1.0 else done("went on without")


def endless(task: Task) -> dict[str, Any]:
    return {"status": "input_required", "inputRequests": {f"q{len(task['answers'])}": form("And?")}}


def asks_for_a_model(task: Task) -> dict[str, Any]:
    return {"status": "input_required", "inputRequests": {"m": {"method": "sampling/createMessage"}}}


def asks_once(task: Task) -> dict[str, Any]:
    return asking(task, {"name": form("Who?")})


def short_lived(task: Task) -> dict[str, Any]:
    return {"status": "gone"} if age(task) > 0.4 else {"status": "working"}


TOOLS: dict[str, Callable[[Task], dict[str, Any]]] = {
    "report": report,
    "travel": travel,
    "slow_to_listen": slow_to_listen,
    "changes_its_mind": changes_its_mind,
    "endless": endless,
    "asks_for_a_model": asks_for_a_model,
    "asks_once": asks_once,
    "refuses_answers": asks_once,
    "slow_to_answer": asks_once,
    "loses_an_answer": asks_once,
    "short_lived": short_lived,
    "sleepy": lambda task: {"status": "working", "statusMessage": "z" * 100_000, "pollIntervalMs": 10**12},
    "never_ends": lambda task: {"status": "working", "statusMessage": "still at it"},
    "fails": lambda task: {
        "status": "failed",
        "error": {"code": -32603, "message": "The printer is on fire"},
    },
    "gives_up": lambda task: {"status": "cancelled", "statusMessage": "no paper"},
    "tool_error": lambda task: done("wrong file", isError=True),
    "impostor": lambda task: {**done("not yours"), "taskId": "somebody-elses"},
    "babbles": lambda task: {"status": "meditating"},
    "no_result": lambda task: {"status": "completed"},
}


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Tasks:
    """The tasks in their file; every request reads and writes it, so that a killed server loses nothing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tasks: dict[str, Task] = json.loads(STORE.read_text()) if STORE.exists() else {}

    def answer(self, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any] | None:
        """The reply to one JSON-RPC message, None for a notification."""
        if "id" not in message:
            return None
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            with self.lock:
                result = self._result(message["method"], message.get("params") or {}, headers)
                STORE.with_suffix(".new").write_text(json.dumps(self.tasks))
                STORE.with_suffix(".new").replace(STORE)
        except Refused as refusal:
            return {**reply, "error": {"code": refusal.code, "message": refusal.message}}
        time.sleep(result.pop("wait", 0))
        return {**reply, "result": {"resultType": "complete", **result}}

    def _result(self, method: str, params: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        match method:
            case "server/discover":
                capabilities = {"tools": {}, "extensions": {EXTENSION: {}}}
                return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
            case "tools/list":
                return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
            case "tools/call":
                _declared(params)
                return self._begin(params["name"], params.get("arguments") or {})
            case "tasks/get" | "tasks/update" | "tasks/cancel":
                _declared(params)
                return self._about(method, self._find(params["taskId"], headers), params)
        raise Refused(-32601, "Method not found")

    def _begin(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        task_id = uuid.uuid4().hex
        record_effect("begun", tool=tool, task=task_id)
        self.tasks[task_id] = {
            "id": task_id,
            "tool": tool,
            "arguments": arguments,
            "created": time.time(),
            "answers": {},
            "cancelled": False,
        }
        return {"resultType": "task", **_facts(self.tasks[task_id]), "status": "working"}

    def _find(self, task_id: str, headers: dict[str, str]) -> Task:
        if headers and headers.get("mcp-name") != task_id:
            raise Refused(-32020, "Mcp-Name is not the task's id")
        task = self.tasks.get(task_id)
        if task is None or (task["tool"] == "short_lived" and age(task) > 0.4):
            raise Refused(-32602, "Task has expired")
        return task

    def _about(self, method: str, task: Task, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tasks/get":
            record_effect("look", task=task["id"])
            return {**_facts(task), **_state(task)}
        if method == "tasks/cancel":
            record_effect("cancel", task=task["id"])
            task["cancelled"] = True
            return {}
        record_effect("update", task=task["id"], keys=sorted(params["inputResponses"]))
        if task["tool"] == "refuses_answers":
            raise Refused(-32602, "that is no name")
        task["updates"] = task.get("updates", 0) + 1
        lost = task["tool"] == "loses_an_answer" and task["updates"] == 1
        for key, response in params["inputResponses"].items() if not lost else ():
            task["answers"].setdefault(key, response)
        task["answered_at"] = age(task)
        late = task["tool"] in ("slow_to_answer", "loses_an_answer") and task["updates"] == 1
        return {"wait": LATE} if late else {}


def _facts(task: Task) -> dict[str, Any]:
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(task["created"]))
    ttl = 400 if task["tool"] == "short_lived" else 3_600_000
    return {
        "taskId": task["id"],
        "createdAt": made,
        "lastUpdatedAt": made,
        "ttlMs": ttl,
        "pollIntervalMs": 200,
    }


def _state(task: Task) -> dict[str, Any]:
    return {"status": "cancelled"} if task["cancelled"] else TOOLS[task["tool"]](task)


def _declared(params: dict[str, Any]) -> None:
    capabilities = (params.get("_meta") or {}).get("io.modelcontextprotocol/clientCapabilities") or {}
    if EXTENSION not in (capabilities.get("extensions") or {}):
        raise Refused(-32021, "Missing required client capability")


def serve_http(tasks: Tasks, port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = tasks.answer(message, {name.lower(): value for name, value in self.headers.items()})
            body = b"" if reply is None else json.dumps(reply).encode()
            self.send_response(202 if reply is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def serve_stdio(tasks: Tasks) -> None:
    for line in sys.stdin:
        reply = tasks.answer(json.loads(line), {})
        if reply is not None:
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    wanted_port = http_port("Tasks MCP server for tests.")
    if wanted_port is None:
        serve_stdio(Tasks())
    else:
        serve_http(Tasks(), wanted_port)
