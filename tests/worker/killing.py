"""The stage of the kill tests: runs on every kind of server at once, workers that die, and what was true in the end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_asyncio
from django.conf import LazySettings

from approvals.gate import PolicyGate
from runs import db
from runs.binding import identity_of
from runs.control import Submission, create_run
from runs.engines.in_process import InProcess
from runs.errors import StateConflict
from runs.models import Account, Agent, Role, Round, Run, Server, ToolCall, User
from runs.run_states import HumanInput
from tests.people import person
from tests.worker.conftest import Desk, story
from tests.worker.kill_subjects import HttpServers, Subject, stdio_entries, subjects
from tests.worker.worker_process import WorkerProcess

PATIENCE = 120.0
"""Seconds that all runs of a test together may take to get anywhere."""


@dataclass(frozen=True)
class Truth:
    """What became of a run, in the words of the recovery table.

    `ended`: "done" (the call's result is the server's), "unknown" (a person is asked what became of the call), or the
    error code of a run that failed. `acted`: how often the server says that it acted on the answer, or set to work.
    `asked`: how often a person was asked by the server.
    """

    ended: str
    acted: int
    asked: int


@dataclass
class Stage:
    """Runs of one test, by the name of their subject."""

    desk: Desk
    folder: Path
    subjects: list[Subject]
    start_worker: Callable[..., WorkerProcess]
    runs: dict[str, Run] = dataclasses.field(default_factory=dict)

    current: WorkerProcess | None = None

    def __post_init__(self) -> None:
        self.held = self.folder / "held"

    # --- the worker ---------------------------------------------------------------------------------------

    def worker(self, *, hold: str | None = None, freeze: bool = False) -> WorkerProcess:
        """A worker that is held at a moment (`held_moments`), or a whole one."""
        env = {"M3_EFFECTS": str(self.folder / "local"), "M3_TEST_HELD": str(self.held)}
        if hold is not None:
            env["M3_TEST_HOLD"] = hold
        if freeze:
            env["M3_TEST_FREEZE"] = "1"
        self.current = self.start_worker(**env)
        return self.current

    async def all_held(self, times: int = 1) -> None:
        """Every run has got to where a worker is held, for the n-th time in this test; on their way there a person
        answers what they ask."""
        for name, run in self.runs.items():
            until = time.monotonic() + PATIENCE
            while self.notes().count(str(run.pk)) < times:
                await self._answer(run)
                await self._check(until, f"{name} to be held", run)
                await asyncio.sleep(0.05)

    def notes(self) -> list[str]:
        """What workers have noted of where they were held."""
        return self.held.read_text().split() if self.held.exists() else []

    async def all_taken_over(self, dead: WorkerProcess) -> None:
        """No question waits for the worker that was killed any more."""
        for name, run in self.runs.items():
            waiting = Round.objects.filter(run=run, lease_owner__contains=f":{dead.process.pid}:").pending()
            await self._until(lambda waiting=waiting: not waiting.exists(), f"{name} to be taken over", run)

    def only(self, names: Iterable[str]) -> None:
        """Leave out all other subjects."""
        self.subjects = [subject for subject in self.subjects if subject.name in set(names)]

    def let_finish(self) -> None:
        """The servers' work may come to its end now."""
        (self.folder / "until").touch()

    # --- the runs -----------------------------------------------------------------------------------------

    async def ask(self) -> None:
        """Start a run on every subject whose call asks a person."""
        for subject in self.subjects:
            self.runs[subject.name] = await db.write(self._start, subject, subject.server, *subject.asks)

    async def work(self) -> None:
        """Start a run on every subject whose call lasts, and wait until each server is at work."""
        for subject in self.subjects:
            server = subject.works_at or subject.server
            self.runs[subject.name] = await db.write(self._start, subject, server, *subject.works)
        for subject in self.subjects:
            await self._until(subject.began, f"{subject.name} to be at work", self.runs[subject.name])

    def _start(self, subject: Subject, fields: dict[str, Any], tool: str, args: dict[str, Any]) -> Run:
        name = re.sub(r"\W+", "_", subject.name) if fields else "local"
        call = {"call": f"{name}:{tool}", "args": args, "as": "r"}
        steps = [call, {"finish": "{{ r.status }}: {{ r.result }}"}]
        agent = Agent.objects.create(
            account=self.desk.account, name=f"on {subject.name}", definition={"steps": steps}
        )
        if fields:
            server = Server(account=self.desk.account, name=name, **fields)
            server.identity = identity_of(server)
            server.save()
            agent.servers.add(server)
        submission = Submission(message="go", mode="autonomous", human_input=HumanInput.MANAGED)
        return create_run(agent, submission)

    # --- the person ---------------------------------------------------------------------------------------

    async def all_asked(self) -> None:
        """Every run waits for a person."""
        for name, run in self.runs.items():
            await self._until(lambda run=run: self._pending(run), f"{name} to ask", run)

    async def answer_all(self) -> None:
        """Answer what is pending now."""
        for run in self.runs.values():
            await self._answer(run)

    async def _answer(self, run: Run) -> None:
        """What the run's servers ask now; a question that ended in this moment has no answer."""
        for round_ in await db.read(self._pending, run):
            with contextlib.suppress(StateConflict):
                await self.desk.answer(round_, {key: agreed(asked) for key, asked in round_.requests.items()})

    @staticmethod
    def _pending(run: Run) -> list[Round]:
        return list(Round.objects.filter(run=run, kind="elicitation").pending())

    # --- the truth ----------------------------------------------------------------------------------------

    async def truths(self, *, at_work: bool = False) -> dict[str, Truth]:
        """Play the person until nothing waits for an answer any more, and say what became of every run."""
        return {
            subject.name: await self._truth(subject, subject.began if at_work else subject.acted)
            for subject in self.subjects
        }

    async def _truth(self, subject: Subject, acted: Callable[[], int]) -> Truth:
        run, until = self.runs[subject.name], time.monotonic() + PATIENCE
        while not (ended := await db.read(_ended, run)):
            await self._answer(run)
            await self._check(until, f"the end of {subject.name}", run)
            await asyncio.sleep(0.05)
        asked = Round.objects.filter(run=run, kind="elicitation").count
        return Truth(ended, acted(), await db.read(asked))

    def counts(self) -> dict[str, int]:
        """How often the servers acted by now."""
        return {subject.name: subject.acted() for subject in self.subjects}

    async def settle_unknown(self) -> None:
        """Say of every unknown call that it happened; each of these runs ends, and no server hears of it."""
        for name, run in self.runs.items():
            for round_ in await db.read(
                lambda run=run: list(Round.objects.filter(run=run, kind="outcome").pending())
            ):
                await self.desk.accept(round_, decision="happened")
                await self._until(lambda run=run: _ended(run) == "done", f"the end of {name}", run)

    async def _until(self, look: Callable[[], Any], what: str, run: Run) -> Any:
        until = time.monotonic() + PATIENCE
        while not (found := await db.read(look)):
            await self._check(until, what, run)
            await asyncio.sleep(0.02)
        return found

    async def _check(self, until: float, what: str, run: Run) -> None:
        """Fail once there is no sense in waiting longer: it took too long, or the worker has ended by itself."""
        ended = self.current and self.current.process.poll()
        assert ended in (None, -signal.SIGKILL), f"the worker ended ({ended}) while we waited for {what}"
        assert time.monotonic() < until, f"waited {PATIENCE} s for {what}\n{await db.read(story, run)}"


def agreed(request: dict[str, Any]) -> dict[str, Any]:
    """Yes to a page; to a form a name in every field that it needs."""
    if request["mode"] == "url":
        return {"action": "accept"}
    schema = request["requested_schema"]
    return {"action": "accept", "content": dict.fromkeys(schema.get("required", []), "Ada")}


def _ended(run: Run) -> str | None:
    unknown = Round.objects.filter(run=run, kind="outcome").pending().exists()
    fresh = Run.objects.get(pk=run.pk)
    call = ToolCall.objects.filter(step__run=run).first()
    if unknown:
        assert (fresh.status, call and call.phase) == ("waiting_for_input", "unknown")
        return "unknown"
    if fresh.status != "finished":
        return None
    return str(call.phase) if call and fresh.outcome == "completed" else str(fresh.error_code)


@contextmanager
def workers() -> Iterator[Callable[..., WorkerProcess]]:
    """Start workers; what is left of them is killed at the end."""
    started: list[WorkerProcess] = []

    def start(**env: str) -> WorkerProcess:
        started.append(WorkerProcess.start(**env))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.kill()


@pytest_asyncio.fixture
async def stage(
    transactional_db: None, settings: LazySettings, tmp_path: Path, http: HttpServers
) -> AsyncIterator[Stage]:
    """Nobody works yet; alice is at the desk."""
    settings.M3 = dataclasses.replace(settings.M3, stdio_servers=stdio_entries(tmp_path))

    def people() -> tuple[Account, User]:
        account = Account.objects.create(name="Acme", slug="acme")
        return account, person("alice", account, Role.OPERATOR)

    account, alice = await db.write(people)
    desk = Desk(account, alice, InProcess(PolicyGate()), "")
    with workers() as start:
        yield Stage(desk, tmp_path, subjects(tmp_path, http), start)
    await asyncio.to_thread(db.close_threads)
