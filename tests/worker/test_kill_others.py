"""What else can die or hang: a keeper, a server, worker after worker, and a worker that was only stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest
from django.db import connection

from runs import db
from runs.models import Round, Run, ToolCall
from tests.mcp.bindings import wait_for
from tests.mcp.test_child_process import is_running
from tests.mcp.test_reattach_stdio import keepers_of
from tests.worker.kill_subjects import HttpServers, http  # noqa: F401  (a fixture)
from tests.worker.killing import Stage, Truth, stage  # noqa: F401  (a fixture)

pytestmark = pytest.mark.node

once = Truth("done", acted=1, asked=1)
lost = Truth("managed_input_recovery_unavailable", acted=1, asked=1)
unsaid = Truth("unknown", acted=1, asked=1)


@pytest.fixture(scope="module", autouse=True)
def playground(http: HttpServers) -> None:  # noqa: F811
    http.start("playground")


async def session_of(run: Run) -> dict[str, str]:
    session: dict[str, str] = (await db.read(ToolCall.objects.get, step__run=run)).wire["session"]
    return session


def child_of(keeper: int) -> int:
    with open(f"/proc/{keeper}/task/{keeper}/children") as children:
        (child,) = children.read().split()
    return int(child)


@pytest.mark.parametrize(
    ("victim", "gone"),
    [
        (lambda keeper: keeper, "The process that kept the server's session"),
        (child_of, "The server's session"),
    ],
    ids=["keeper", "server"],
)
async def test_the_worker_and_then_what_it_left_behind_are_killed(
    stage: Stage,  # noqa: F811
    victim: Callable[[int], int],
    gone: str,
) -> None:
    stage.only(["legacy stdio", "everything stdio"])
    first = stage.worker()
    await stage.ask()
    await stage.all_asked()
    first.kill()
    for run in stage.runs.values():
        (keeper,) = keepers_of((await session_of(run))["keeper"])
        killed = victim(keeper)
        os.kill(killed, signal.SIGKILL)
        await asyncio.to_thread(wait_for, lambda pid=killed: not is_running(pid), "its end")
    await stage.answer_all()
    stage.worker()
    assert await stage.truths() == dict.fromkeys(stage.runs, lost)
    for run in stage.runs.values():
        assert gone in ((await db.read(Run.objects.get, pk=run.pk)).error or "")
        round_ = await db.read(Round.objects.get, run=run)
        assert (round_.status, round_.failure_code) == ("failed", "recovery_unavailable")


async def test_worker_and_server_are_killed_and_the_server_is_started_again(
    stage: Stage,  # noqa: F811
    http: HttpServers,  # noqa: F811
) -> None:
    stage.only(["modern http", "legacy http"])
    first = stage.worker()
    await stage.ask()
    await stage.all_asked()
    first.kill()
    http.kill("playground")
    await stage.answer_all()
    http.start("playground")
    stage.worker()
    assert await stage.truths() == {"modern http": once, "legacy http": lost}


async def test_worker_after_worker_is_killed(stage: Stage) -> None:  # noqa: F811
    """The first before its call, the second while a person thinks, the third with the reply in its hands."""
    stage.only(
        ["modern stdio", "modern http", "legacy stdio", "legacy http", "everything stdio", "local, replay"]
    )
    first = stage.worker(hold="before sent")
    await stage.ask()
    await stage.all_held()
    first.kill()
    second = stage.worker()
    await stage.all_asked()
    second.kill()
    await stage.answer_all()
    third = stage.worker(hold="before result")
    await stage.all_held(times=2)
    third.kill()
    stage.worker()
    modern = dict.fromkeys(["modern stdio", "modern http"], unsaid)
    kept = dict.fromkeys(["legacy stdio", "legacy http", "everything stdio"], once)
    repeated = {
        "local, replay": Truth("failed", acted=1, asked=1)
    }  # it was tried twice, and is not a third time
    assert await stage.truths() == modern | kept | repeated


async def test_pauses_of_our_own_outlive_every_worker(stage: Stage) -> None:  # noqa: F811
    """An approval, a question and a plan: each is answered while nobody works, and the call is made once."""
    question = {"question": "Which?", "header": "Seat", "options": [{"label": "a"}, {"label": "b"}]}
    steps = [
        {"ask": {"questions": [question]}, "as": "a"},
        {"plan": ["Book it"], "as": "p"},
        {"call": "local:sign", "args": {"tag": "local"}, "as": "r"},
        {"finish": "{{ r.result }}"},
    ]
    stage.only(["local"])
    run = stage.runs["local"] = await stage.desk.start(steps, server="", mode="plan")
    answers = {
        "question": {"selected": [1]},
        "plan": {"decision": "approve"},
        "approval": {"decision": "allow"},
    }
    for kind, content in answers.items():
        process = stage.worker()
        (round_,) = await stage.desk.pending(run, kind)
        process.kill()
        await stage.desk.accept(round_, **content)
    stage.worker()
    assert await stage.truths() == {"local": once}


async def test_a_worker_that_was_only_stopped_does_no_harm_when_it_goes_on(stage: Stage) -> None:  # noqa: F811
    """It stops with the reply in its hands, for longer than its lease.

    On SQLite it still owns the database and nobody else may work; elsewhere it has lost the run to whoever claimed it,
    and what it then writes is refused.
    """
    stage.only(["modern http"])
    first = stage.worker(hold="before result", freeze=True)
    await stage.ask()
    await stage.all_held()
    if connection.vendor == "sqlite":
        with pytest.raises(AssertionError, match="the worker did not start"):
            stage.worker()
        first.process.send_signal(signal.SIGCONT)
        assert await stage.truths() == {"modern http": once}
        return
    stage.worker()
    assert await stage.truths() == {"modern http": unsaid}
    first.process.send_signal(signal.SIGCONT)
    await asyncio.to_thread(wait_for, lambda: "refused" in stage.notes(), "the late write to be refused")
    call = await db.read(ToolCall.objects.get, step__run=stage.runs["modern http"])
    assert (call.phase, call.raw_result) == ("unknown", None)
    await stage.settle_unknown()
    assert stage.counts() == {"modern http": 1}
