"""The Tasks extension as another implementation speaks it: a server of the PyPI package `fastmcp-tasks`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runs import db
from runs.binding import identity_of
from runs.control import cancel
from runs.models import Run, Server
from runs.round_rows import Decider
from tests.mcp.bindings import PATIENCE, ROOT, effects_in, free_port, listens, wait_for
from tests.requirements import peer_python
from tests.worker.conftest import Desk, results
from tests.worker.following import told


@pytest.fixture(scope="module")
def peer_effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fastmcp") / "done"


@pytest.fixture(scope="module")
def peer_url(peer_effects: Path) -> Iterator[str]:
    """One server for all of these tests; it takes seconds to start."""
    port = free_port()
    command = [peer_python("fastmcp_tasks"), str(ROOT / "tests/peers/fastmcp_tasks_server.py"), str(port)]
    process = subprocess.Popen(
        command, env={**os.environ, "M3_EFFECTS": str(peer_effects)}, stderr=subprocess.DEVNULL
    )
    wait_for(lambda: listens(port) or process.poll() is not None, "the fastmcp-tasks server")
    assert process.poll() is None, "the fastmcp-tasks server did not start"
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait(PATIENCE)


@pytest.fixture
def done(peer_effects: Path) -> Callable[[str], list[dict[str, Any]]]:
    """What this test had the server do, as it counted it itself."""
    before = len(effects_in(peer_effects))
    return lambda what: [effect for effect in effects_in(peer_effects)[before:] if effect["what"] == what]


@pytest.fixture
def at_peer(desk_: Desk, peer_url: str) -> Callable[..., Any]:
    async def start(tool: str, **args: Any) -> Run:
        await db.write(_register, desk_, peer_url)
        return await desk_.start([{"call": f"peer:{tool}", "args": args, "as": "t"}], server="peer")

    return start


def _register(desk: Desk, url: str) -> None:
    row = Server.objects.create(account=desk.account, name="peer", transport="http", url=url)
    row.identity = identity_of(row)
    row.save()


async def test_its_task_runs_once_and_gives_the_calls_result(
    desk_: Desk, at_peer: Callable[..., Any], done: Callable[[str], list[Any]], tmp_path: Path
) -> None:
    run = await at_peer("report", until=str(tmp_path / "now"))
    await desk_.eventually(lambda: told(run) == "page 1 of 2", "its progress", run)
    (tmp_path / "now").touch()
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == "2 pages"
    assert len(done("report")) == 1


async def test_its_form_and_its_page_are_answered_in_two_rounds_and_it_acts_once(
    desk_: Desk, at_peer: Callable[..., Any], done: Callable[[str], list[Any]]
) -> None:
    run = await at_peer("travel", to="Rome")
    (first,) = await desk_.pending(run, "elicitation")
    assert sorted(request["mode"] for request in first.requests.values()) == ["form", "url"]
    assert done("travel") == []
    await desk_.answer(first, {key: _agreed(request) for key, request in first.requests.items()})
    (second,) = await desk_.pending(run, "elicitation")
    await desk_.accept(second, seat="12A")
    assert (await desk_.finished(run)).outcome == "completed"
    (booked,) = done("travel")
    assert booked["answers"]["name"]["content"] == {"name": "Ada"}
    assert booked["answers"]["terms"]["action"] == "accept"
    assert booked["answers"]["seat"]["content"] == {"seat": "12A"}


async def test_its_protocol_error_is_the_calls_error(desk_: Desk, at_peer: Callable[..., Any]) -> None:
    run = await at_peer("broken")
    await desk_.finished(run)
    result = (await db.read(results, run))["steps.0"]
    assert (result["status"], result["error"]) == ("failed", "The task failed: The printer is on fire")


async def test_a_cancelled_run_stops_its_work(
    desk_: Desk, at_peer: Callable[..., Any], done: Callable[[str], list[Any]]
) -> None:
    run = await at_peer("endless")
    await desk_.eventually(lambda: done("endless"), "the work to begin", run)
    # Until the peer has said under which name the work goes on, nobody can ask for its end.
    await desk_.eventually(lambda: run.events.filter(type="tool_call.task").exists(), "the task", run)
    decider = Decider(user=desk_.person, via="api")
    await db.write(cancel, run.pk, decider=decider)
    await desk_.eventually(lambda: done("stopped"), "the work to be stopped", run)


def _agreed(request: dict[str, Any]) -> dict[str, Any]:
    accepted: dict[str, Any] = {"action": "accept"}
    return accepted | ({"content": {"name": "Ada"}} if request["mode"] == "form" else {})
