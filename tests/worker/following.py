"""The tasks server as a process that a test may end and start again, and runs that call it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs import db
from runs.binding import identity_of
from runs.models import Run, Server, ToolCall
from tests.mcp.bindings import PATIENCE, ROOT, effects_in, free_port, listens, wait_for

NAME = {"action": "accept", "content": {"name": "Ada"}}


class TasksServer:
    """`tests.servers.tasks_server` over HTTP; what it was asked to do, it has written down."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        files = {"M3_TASKS": str(self.folder / "tasks.json"), "M3_EFFECTS": str(self.folder / "done")}
        command = [sys.executable, "-m", "tests.servers.tasks_server", "--http", str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **files})
        wait_for(lambda: listens(self.port), "the tasks server")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(PATIENCE)
            self.process = None

    def forget(self) -> None:
        """Start anew, knowing nothing of any task."""
        self.kill()
        (self.folder / "tasks.json").unlink()
        self.start()

    def done(self, what: str) -> list[dict[str, Any]]:
        """What it has noted: `begun`, `look`, `update` or `cancel`."""
        return [effect for effect in effects_in(self.folder / "done") if effect["what"] == what]


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[TasksServer]:
    folder = tmp_path / "tasks"
    folder.mkdir()
    server = TasksServer(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def at_tasks(desk_: Any, tasks: TasksServer) -> Callable[..., Any]:
    """Start a run whose agent has the tasks server: `what` is the tool to call, or a whole list of steps."""

    async def started(what: str | list[Any], args: dict[str, Any] | None = None, **options: Any) -> Run:
        await db.write(_register, desk_, tasks.url)
        steps = [{"call": f"tasks:{what}", "args": args or {}, "as": "t"}] if isinstance(what, str) else what
        run: Run = await desk_.start(steps, server="tasks", **options)
        return run

    return started


def _register(desk: Any, url: str) -> None:
    row, created = Server.objects.get_or_create(
        account=desk.account, name="tasks", defaults={"transport": "http", "url": url}
    )
    if created:
        row.identity = identity_of(row)
        row.save()


def call_of(run: Run) -> ToolCall:
    return ToolCall.objects.get(step__run=run)


def told(run: Run) -> str:
    """The server's own word on how far its task is, or why the last look came to nothing; "" before either."""
    call = ToolCall.objects.filter(step__run=run).first()
    return str(((call.wire.get("progress") if call else None) or {}).get("message") or "")
