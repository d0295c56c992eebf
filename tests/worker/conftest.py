"""A real worker on a real database against real MCP servers; the test plays the person."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from django.conf import LazySettings

from approvals.gate import PolicyGate
from runs import control, db, lease
from runs.binding import identity_of
from runs.engines.in_process import InProcess
from runs.models import Account, Agent, Round, Run, Server, User
from runs.run_states import HumanInput
from tests.mcp.bindings import LEGACY, ROOT, STATE_KEY, effects_in
from tests.mcp.conftest import serve_http  # noqa: F401  (a fixture)
from tests.mcp.killed import keep_in
from tests.worker.following import at_tasks, tasks  # noqa: F401  (fixtures)

PATIENCE = 60.0
"""Seconds that a run may take to get where a test expects it."""


@pytest.fixture(autouse=True)
def patient_settings(settings: LazySettings, tmp_path: Path) -> dict[str, Any]:
    """Short leases and sweeps, and the allow-list entries of the servers that these tests talk to."""

    def module(name: str, **env: str) -> dict[str, Any]:
        effects = {"M3_EFFECTS": str(tmp_path / "effects")}
        return {"command": sys.executable, "args": ["-m", name], "cwd": str(ROOT), "env": {**effects, **env}}

    entries = {
        "shipping": module("m3web.demo_servers.shipping", M3_SHIPPING_STATE_KEY=STATE_KEY),
        "desk": module("m3web.demo_servers.desk"),
        "forgetful": module("tests.servers.playground"),
    }
    settings.M3 = dataclasses.replace(
        settings.M3,
        data_dir=keep_in(tmp_path).folder,  # short enough for the sockets of keepers
        stdio_servers=entries,
        lease_seconds=3.0,
        sweep_seconds=0.3,
        keeper_orphan_seconds=60.0,
        allow_private_urls=True,
    )
    return entries


@pytest.fixture
def effects(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """What the stdio servers of this test have done, as they counted it themselves."""
    return lambda: effects_in(tmp_path / "effects")


@pytest.fixture(scope="session")
def playground_effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("playground") / "effects"


@pytest.fixture(scope="session")
def playground_url(serve_http: Callable[..., str], playground_effects: Path) -> str:  # noqa: F811
    """One playground for all tests of this process; starting one takes seconds."""
    return serve_http("tests.servers.playground", M3_STATE_KEY=STATE_KEY, M3_EFFECTS=str(playground_effects))


class Desk:
    """The test's view of the product: start runs, see what waits, decide, wait for the end."""

    async def start(
        self, steps: Any, *, server: str = "shipping", mode: str = "autonomous", **options: Any
    ) -> Run:
        """A run of a new agent that plays `steps` (a list, or a whole playbook)."""
        return await db.write(self._start, steps, server, mode, options)

    def __init__(self, account: Account, person: User, engine: InProcess, playground: str) -> None:
        self.account, self.person, self.engine, self.playground = account, person, engine, playground

    def _start(self, steps: Any, servers: str, mode: str, options: dict[str, Any]) -> Run:
        agent = self.agent(options.pop("name", None) or f"agent {Agent.objects.count()}", steps, servers)
        fields = {"message": "go", "mode": mode, "human_input": HumanInput.MANAGED, **options}
        return control.create_run(agent, control.Submission(**fields))

    def agent(self, name: str, steps: Any, servers: str) -> Agent:
        playbook = steps if isinstance(steps, dict) else {"steps": steps}
        agent = Agent.objects.create(account=self.account, name=name, definition=playbook)
        for name in servers.split():
            agent.servers.add(self.server(name))
        return agent

    def server(self, name: str) -> Server:
        """A stdio server from the allow-list, or the shared playground over HTTP: in the present generation as
        "playground", in the older one as "legacy"."""
        fields: dict[str, Any] = {"transport": "stdio", "entry": name}
        if name in ("playground", "legacy"):
            fields = {"transport": "http", "url": self.playground}
        if name == "legacy":
            fields["negotiated"] = LEGACY
        row, created = Server.objects.get_or_create(
            account=self.account, name=name, defaults={"trusted": True, **fields}
        )
        if created:
            row.identity = identity_of(row)
            row.save()
        return row

    async def pending(self, run: Run, kind: str | None = None, count: int = 1) -> list[Round]:
        """The run's pending rounds, once there are `count`."""

        def look() -> list[Round] | None:
            rounds = (
                Round.objects.filter(run=run).pending().select_related("step__call").order_by("created_at")
            )
            found = list(rounds.filter(kind=kind) if kind else rounds)
            return found if len(found) >= count else None

        return await self.eventually(look, f"{count} pending {kind or 'rounds'} of run {run.pk}", run)

    async def answer(self, round_: Round, responses: dict[str, Any], **options: Any) -> Round:
        from runs.access import actor_for

        return await db.read(_decide, actor_for, self.person, round_.pk, responses, options)

    async def accept(self, round_: Round, **content: Any) -> Round:
        """Accept a round with one key."""
        (key,) = round_.requests
        return await self.answer(round_, {key: {"action": "accept", "content": content}})

    async def finished(self, run: Run) -> Run:
        def look() -> Run | None:
            fresh = Run.objects.get(pk=run.pk)
            return fresh if fresh.status == "finished" else None

        return await self.eventually(look, f"the end of run {run.pk}", run)

    async def eventually(self, look: Callable[[], Any], what: str, run: Run | None = None) -> Any:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = await db.read(look)
            if found:
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"waited {PATIENCE} s for {what}\n{await db.read(story, run) if run else ''}")


def _decide(
    actor_for: Any, person: User, round_id: str, responses: dict[str, Any], options: dict[str, Any]
) -> Round:
    from approvals import decisions

    fields = {"idempotency_key": f"test-{round_id}", "via": "api", **options}
    return decisions.decide(actor_for(person), round_id, responses, **fields)


def story(run: Run) -> str:
    """What happened, for a failing test's message."""
    lines = [f"{event.seq} {event.type} {event.payload}" for event in run.events.order_by("seq")]
    return "\n".join([f"{run} is {Run.objects.get(pk=run.pk).status}", *lines])


def results(run: Run) -> dict[str, Any]:
    """{path: result} of a run's steps."""
    return dict(run.steps.values_list("path", "result"))


@pytest_asyncio.fixture()
async def desk_of(transactional_db: None, playground_url: str) -> AsyncIterator[Callable[..., Any]]:
    """Start workers; each is stopped, and its threads give their connections back, when the test ends."""
    running: list[asyncio.Task[None]] = []

    async def start(account: Account, person: User) -> Desk:
        engine = InProcess(PolicyGate())
        task = asyncio.create_task(engine.serve())
        running.append(task)
        return Desk(account, person, engine, playground_url)

    yield start
    for task in running:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    await asyncio.to_thread(db.close_threads)


@pytest_asyncio.fixture()
async def desk_(desk_of: Callable[..., Any]) -> Desk:
    """One worker, one account, alice at the desk."""
    from tests.people import person

    def people() -> tuple[Account, User]:
        account = Account.objects.create(name="Acme", slug="acme")
        from runs.models import Role

        return account, person("alice", account, Role.OPERATOR)

    account, alice = await db.write(people)
    return await desk_of(account, alice)


async def replaced(desk_of: Callable[..., Any], old: Desk, stop: Callable[[], Any]) -> Desk:
    """Stop the old worker where it is, free its leases as the next process does, start another."""
    await stop()
    await db.write(lease.take_over)
    return await desk_of(old.account, old.person)


@pytest.fixture
def stop(desk_: Desk) -> Callable[[], Any]:
    async def stop() -> None:
        for task in asyncio.all_tasks():
            if getattr(task.get_coro(), "__qualname__", "") == "Worker.serve":
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    return stop
