"""A server of the `fastmcp-tasks` package over HTTP: an independent implementation of the Tasks extension (SEP-2663).

`python fastmcp_tasks_server.py PORT`, in the peer's own environment (tests/peers/fastmcp_tasks.txt). Its tasks live in
the memory of the process. M3_EFFECTS names a file that gets one JSON line per execution.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import sys
from typing import Any

import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.dependencies import Progress
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp.shared.exceptions import MCPError

server = FastMCP("tasks")
server.add_extension(TasksExtension())
ALWAYS = TaskConfig(mode="required", poll_interval=dt.timedelta(seconds=0.3))


def record(what: str, **facts: Any) -> None:
    with open(os.environ["M3_EFFECTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, **facts}) + "\n")


def form(message: str, field: str) -> mcp_types.ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return mcp_types.ElicitRequest(
        params=mcp_types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def page(url: str) -> mcp_types.ElicitRequest:
    return mcp_types.ElicitRequest(params=mcp_types.ElicitRequestURLParams(message="Agree", url=url))


@server.tool(task=ALWAYS)
async def report(until: str, progress: Progress = Progress()) -> str:  # noqa: B008
    """Says that it is on page 1 until there is a file named `until`."""
    record("report")
    await progress.set_message("page 1 of 2")
    while not os.path.exists(until):
        await asyncio.sleep(0.05)
    return "2 pages"


@server.tool(task=ALWAYS)
async def travel(to: str, ctx: Context) -> Any:
    """Asks for a form and a page, then for another form; books once it has all."""
    answers = json.loads(ctx.request_state or "{}")
    for key, response in (ctx.input_responses or {}).items():
        answers[key] = response.model_dump(exclude_none=True) if hasattr(response, "model_dump") else response
    wanted: dict[str, Any] = {"name": form("Who travels?", "name"), "terms": page("https://terms.example/1")}
    if wanted.keys() <= answers.keys():
        wanted = {"seat": form("Which seat?", "seat")}
    missing = {key: request for key, request in wanted.items() if key not in answers}
    if missing:
        return mcp_types.InputRequiredResult(input_requests=missing, request_state=json.dumps(answers))
    record("travel", to=to, answers=answers)
    return json.dumps(answers)


@server.tool(task=ALWAYS)
async def broken() -> str:
    record("broken")
    raise MCPError(code=-32603, message="The printer is on fire")


@server.tool(task=ALWAYS)
async def endless() -> str:
    record("endless")
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        record("stopped")
        raise
    return "never"


if __name__ == "__main__":
    server.run(
        "http", host="127.0.0.1", port=int(sys.argv[1]), path="/mcp", show_banner=False, log_level="error"
    )
