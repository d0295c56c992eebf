"""The same as test_session_keeper, with a worker that is a process and gets no chance to say goodbye."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import pytest_asyncio

from runs import db
from runs.models import Account, Role, Round, ToolCall, User
from tests.people import person
from tests.worker.conftest import Desk
from tests.worker.test_session_keeper import (  # noqa: F401  (fixtures)
    asked,
    keeper_of,
    names_of,
    old_server,
    received,
)
from tests.worker.worker_process import WorkerProcess


@pytest.fixture
def worker() -> Iterator[Callable[[], WorkerProcess]]:
    """Start workers; what is left of them is killed when the test ends."""
    started: list[WorkerProcess] = []

    def start() -> WorkerProcess:
        started.append(WorkerProcess.start())
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest_asyncio.fixture()
async def away(transactional_db: None) -> Any:
    """A desk without a worker in this process."""
    from approvals.gate import PolicyGate
    from runs.engines.in_process import InProcess

    def people() -> tuple[Account, User]:
        account = Account.objects.create(name="Acme", slug="acme")
        return account, person("alice", account, Role.OPERATOR)

    account, alice = await db.write(people)
    yield Desk(account, alice, InProcess(PolicyGate()), "")
    await asyncio.to_thread(db.close_threads)


async def test_killed_while_a_person_thinks_and_answered_by_the_next_worker(
    away: Desk,
    worker: Callable[[], WorkerProcess],
    received: Any,  # noqa: F811
) -> None:
    first = worker()
    run, round_ = await asked(away)
    keeper = await keeper_of(run)
    first.kill()
    worker()
    await away.eventually(lambda: run.events.filter(type="tool_call.resumed").exists(), "the attach", run)
    assert await keeper_of(run) == keeper
    await away.accept(round_, name="Ada")
    assert (await away.finished(run)).output == "done"
    assert await names_of(run) == ["Ada"]
    assert (len(received("tools/call")), len(received("answers"))) == (1, 1)
    assert received("notifications/cancelled") == []


async def test_killed_after_the_answer_and_before_the_reply_the_call_still_finishes_once(
    away: Desk,
    worker: Callable[[], WorkerProcess],
    received: Any,  # noqa: F811
) -> None:
    first = worker()
    run, round_ = await asked(away, then=3)
    await away.accept(round_, name="Ada")
    await away.eventually(lambda: received("answers"), "the answer to reach the server", run)
    first.kill()
    worker()
    assert (await away.finished(run)).output == "done"
    assert (len(received("tools/call")), len(received("answers"))) == (1, 1)
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert (call.attempts, call.phase) == (1, "done")


async def test_killed_three_times_with_answers_while_nobody_works(
    away: Desk,
    worker: Callable[[], WorkerProcess],
    received: Any,  # noqa: F811
) -> None:
    process = worker()
    run, round_ = await asked(away, times=3)
    for number in range(3):
        process.kill()
        await away.accept(round_, name=f"answer {number}")
        process = worker()
        if number < 2:
            round_ = await away.eventually(
                lambda index=number + 1: Round.objects.filter(run=run, round_index=index).pending().first(),
                f"prompt {number + 1}",
                run,
            )
    assert (await away.finished(run)).output == "done"
    assert await names_of(run) == ["answer 0", "answer 1", "answer 2"]
    assert (len(received("tools/call")), len(received("answers"))) == (1, 3)
