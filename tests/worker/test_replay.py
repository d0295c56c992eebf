"""A live session is lost, its server too, and the call may be made again: what people answered is not asked twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from runs import db
from runs.errors import StateConflict
from runs.models import Round, Run, Server, Tool
from tests.mcp.bindings import LEGACY, PATIENCE, ROOT, effects_in, free_port, listens, wait_for
from tests.worker.conftest import Desk, replaced


class Service:
    """A server of the older generation over HTTP that can be lost and come back at the same address."""

    def __init__(self, effects: Path) -> None:
        self.port, self.effects = free_port(), effects
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.servers.playground", "--http", str(self.port)]
        env = {**os.environ, "M3_EFFECTS": str(self.effects)}
        self.child = subprocess.Popen(command, cwd=ROOT, env=env)
        wait_for(lambda: listens(self.port), "the server to listen")

    def stop(self) -> None:
        assert self.child is not None
        self.child.kill()
        self.child.wait(PATIENCE)

    def answers(self) -> list[Any]:
        """What each execution that came to its end was told, as the server counted it."""
        return [effect["answers"] for effect in effects_in(self.effects) if effect["what"] == "ask_in_turn"]


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    service = Service(tmp_path / "service-effects")
    service.start()
    yield service
    service.stop()


@pytest.fixture
def lose(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any], service: Service
) -> Callable[..., Any]:
    def server_row() -> None:
        Server.objects.create(
            account=desk_.account,
            name="frail",
            transport="http",
            url=service.url,
            negotiated=LEGACY,
            trusted=False,
        )

    async def lose(*, answers: int = 1, **word: Any) -> tuple[Run, Desk]:
        """A call that asks twice, answered `answers` times when worker and server are lost together; `word` is
        the admin's about the tool."""
        await db.write(server_row)
        step = {"call": "frail:ask_in_turn", "args": {"times": 2}, "as": "r"}
        run = await desk_.start([step, {"finish": "{{ r.status }}"}], server="frail")
        for number in range(answers):
            (round_,) = await desk_.pending(run)
            await desk_.accept(round_, name=f"answer {number}")
            following = Round.objects.filter(run=run, round_index=number + 1)
            await desk_.eventually(following.exists, "the next prompt", run)
        await desk_.pending(run)
        await stop()
        await db.write(Tool.objects.filter(name="ask_in_turn").update, **word)
        service.stop()
        service.start()
        return run, await replaced(desk_of, desk_, stop)

    return lose


async def parked(desk: Desk, run: Run) -> Round:
    """The pending round, once no session waits on it any more."""
    waiting = Round.objects.filter(run=run, held=False, status="pending")
    return await desk.eventually(waiting.select_related("step__call").first, "the round to be parked", run)


async def test_the_open_round_waits_on_and_the_call_is_made_again_with_all_answers(
    lose: Callable[..., Any], service: Service
) -> None:
    run, desk = await lose(replay_allowed=True)
    await desk.accept(await parked(desk, run), name="answer 1")
    assert (await desk.finished(run)).output == "done"
    given = [{"action": "accept", "content": {"name": f"answer {number}"}} for number in range(2)]
    assert service.answers() == [given]
    rounds = await db.read(lambda: list(Round.objects.filter(run=run).values_list("status", "outcome")))
    assert rounds == [("resolved", "answered"), ("resolved", "answered")]


async def test_a_tool_that_an_admin_calls_idempotent_may_be_made_again_too(
    lose: Callable[..., Any], service: Service
) -> None:
    run, desk = await lose(idempotent=True, answers=0)
    await desk.accept(await parked(desk, run), name="only once")
    (second,) = await desk.pending(run)
    assert second.round_index == 1
    await desk.accept(second, name="asked for the first time")
    await desk.finished(run)
    assert len(service.answers()) == 1


async def test_a_stored_answer_is_never_given_to_a_prompt_that_differs(
    lose: Callable[..., Any], service: Service
) -> None:
    run, desk = await lose(replay_allowed=True)
    round_ = await parked(desk, run)

    def as_if_the_server_now_asks_differently() -> None:
        first = Round.objects.get(run=run, round_index=0)
        first.requests["elicitation"]["message"] = "Question 0, as it was put before"
        first.save()

    await db.write(as_if_the_server_now_asks_differently)
    await desk.accept(round_, name="for the old second prompt")
    for number in range(2):
        (asked,) = await desk.pending(run)
        assert asked.requests["elicitation"]["message"] == f"Question {number}"
        await desk.accept(asked, name=f"new answer {number}")
    await desk.finished(run)
    assert [answer["content"]["name"] for answer in service.answers()[0]] == ["new answer 0", "new answer 1"]
    unused = await db.read(Round.objects.get, pk=round_.pk)
    assert (unused.status, unused.outcome) == ("failed", "superseded"), "it was never delivered, and says so"


async def test_without_a_word_that_permits_it_the_round_and_the_run_fail(
    lose: Callable[..., Any], service: Service
) -> None:
    run, desk = await lose()
    done = await desk.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "managed_input_recovery_unavailable")
    last = await db.read(Round.objects.get, run=run, round_index=1)
    assert (last.status, last.outcome) == ("failed", "recovery_unavailable")
    with pytest.raises(StateConflict):
        await desk.accept(last, name="too late")
    assert service.answers() == []
