"""A server answers a call with a task (SEP-2663): any worker follows it, its questions are rounds like all others."""

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
from runs.models import Run, Server
from tests.mcp.bindings import PATIENCE, ROOT, effects_in, free_port, listens, wait_for
from tests.worker.conftest import Desk, results

NAME = {"action": "accept", "content": {"name": "Ada"}}


class TasksServer:
    """The tasks server as a process that a test may end and start again; what it did, it has written down."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = {
            **os.environ,
            "M3_TASKS": str(self.folder / "tasks.json"),
            "M3_EFFECTS": str(self.folder / "done"),
        }
        command = [sys.executable, "-m", "tests.servers.tasks_server", "--http", str(self.port)]
        self.process = subprocess.Popen(command, cwd=ROOT, env=env)
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
        return [effect for effect in effects_in(self.folder / "done") if effect["what"] == what]


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[TasksServer]:
    server = TasksServer(tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def at_tasks(desk_: Desk, tasks: TasksServer) -> Callable[..., Any]:
    """Start a run whose agent has the tasks server; `tool` is a tool to call, or the whole list of steps."""

    async def start(tool: str | list[Any], **args: Any) -> Run:
        await db.write(_register, desk_, tasks.url)
        steps = [{"call": f"tasks:{tool}", "args": args, "as": "t"}] if isinstance(tool, str) else tool
        return await desk_.start(steps, server="tasks")

    return start


def _register(desk: Desk, url: str) -> None:
    row, created = Server.objects.get_or_create(
        account=desk.account, name="tasks", defaults={"transport": "http", "url": url}
    )
    if created:
        row.identity = identity_of(row)
        row.save()


async def result_of(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = (await db.read(results, run))["steps.0"]
    return found


async def test_a_task_without_questions_ends_in_the_calls_result(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("report")
    assert (await desk_.finished(run)).outcome == "completed"
    assert await result_of(run) == {"status": "done", "result": '"the report"', "error": None}
    assert len(tasks.done("begun")) == 1


async def test_forms_and_pages_of_a_task_are_rounds_and_each_answer_leaves_once(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run, "elicitation")
    assert {key: request["mode"] for key, request in first.requests.items()} == {
        "name": "form",
        "terms": "url",
    }
    assert not first.held
    await desk_.eventually(lambda: run.pk not in desk_.engine.active, "the run to be a row and no task", run)
    await desk_.answer(first, {"name": NAME, "terms": {"action": "accept"}})
    (second,) = await desk_.pending(run, "elicitation")
    assert (second.round_index, list(second.requests)) == (1, ["seat:1"])
    await desk_.answer(second, {"seat:1": {"action": "decline"}})
    await desk_.finished(run)
    assert [update["keys"] for update in tasks.done("update")] == [["name", "terms"], ["seat:1"]]
    assert len(tasks.done("begun")) == 1
