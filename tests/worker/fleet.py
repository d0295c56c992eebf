"""Workers on several hosts with one PostgreSQL.

A host is a data folder of its own here, as in a container: its keepers are reached by whoever sees that folder, and by
nobody else. The test itself is a web process on a further host.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from django.conf import LazySettings
from django.db import connection

from approvals.gate import PolicyGate
from runs import clock, db, engines, hosts
from runs.engines.in_process import InProcess
from runs.keeper.place import this_host
from runs.models import Account, LeftSession, Role, Round, Run, ToolCall, User
from tests.mcp.bindings import ROOT, effects_in, wait_for
from tests.mcp.test_child_process import is_running
from tests.mcp.test_reattach_stdio import keepers_of
from tests.people import person
from tests.worker.conftest import Desk
from tests.worker.link import Link
from tests.worker.worker_process import WorkerProcess, database_url

SOON = 2.0
"""Seconds without a sign of life after which a host is gone, where a test waits for that."""

NEVER = 600.0
"""The same, where a host that is away for a moment must not count as gone."""

on_a_server = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one process, so one host"
)


class Fleet:
    """Hosts by name ("a", "b"), with one worker each at most, and what the older stdio server has received."""

    def __init__(self, desk: Desk, folder: Path, seen: Path) -> None:
        self.desk, self.seen = desk, seen
        self._folder = folder
        self._workers: dict[str, WorkerProcess] = {}
        self.links: dict[str, Link] = {}

    def folder(self, host: str) -> Path:
        return self._folder.with_name(self._folder.name + host)

    def identity(self, host: str) -> str:
        return this_host(self.folder(host) / "keepers")

    # --- workers ------------------------------------------------------------------------------------------

    def start(self, host: str, *, cuttable: bool = False) -> WorkerProcess:
        """Start the worker of a host; a `cuttable` one reaches the database over `links[host]`."""
        env = {"M3_DATA_DIR": str(self.folder(host)), "M3_EFFECTS": str(self.seen.parent / "local")}
        if cuttable:
            parts = urlsplit(database_url())
            link = self.links[host] = Link(str(parts.hostname), int(parts.port or 5432))
            env["DATABASE_URL"] = parts._replace(netloc=f"{parts.username}@127.0.0.1:{link.port}").geturl()
        worker = self._workers[host] = WorkerProcess.start(**env)
        return worker

    def kill(self, host: str) -> None:
        self._workers.pop(host).kill()

    def end(self) -> None:
        for host in list(self._workers):
            self.kill(host)
        for link in self.links.values():
            link.close()

    async def gone(self, host: str) -> None:
        """Wait until a host counts as gone."""
        identity = self.identity(host)
        await self.desk.eventually(lambda: hosts.is_gone(identity), f"host {host} to be gone")

    async def looked_at_everything(self) -> None:
        """Some worker has found and done something that came after all that is due now, twice."""
        for _ in range(2):
            await self.desk.finished(await self.desk.start([{"finish": "found"}], server=""))

    # --- runs ---------------------------------------------------------------------------------------------

    async def asked(self, **arguments: Any) -> tuple[Run, Round]:
        """A run whose call of an older stdio server waits for a person; a reply makes the call once more."""
        call = {"call": "old:asks_in_turn", "args": {"times": 1, **arguments}, "as": "r"}
        steps = [call, {"finish": "{{ r.status }}"}]
        run = await self.desk.start({"steps": steps, "replies": [steps]}, server="old")
        (round_,) = await self.desk.pending(run)
        return run, round_

    async def let_go(self, run: Run) -> None:
        """Nobody's lease is left on the run."""
        free = Run.objects.filter(pk=run.pk, lease_until__lte=clock.moment())
        await self.desk.eventually(free.exists, "the lease to end", run)

    async def keeper_of(self, run: Run) -> int:
        call = await db.read(ToolCall.objects.get, step__run=run)
        (keeper,) = keepers_of(call.wire["session"]["keeper"])
        return keeper

    async def ended(self, keeper: int) -> None:
        await asyncio.to_thread(wait_for, lambda: not is_running(keeper), "the keeper to end")
        await self.desk.eventually(lambda: not LeftSession.objects.exists(), "the note of it to go")

    def answers(self) -> int:
        """How many questions of the server were answered by a person, and not by the client's refusal."""
        return sum("result" in entry["message"] for entry in effects_in(self.seen))

    def received(self, method: str | None) -> int:
        """How many messages of a method have reached the server; None: answers and refusals to its questions."""
        return sum(entry["message"].get("method") == method for entry in effects_in(self.seen))


@pytest.fixture(name="old_server")
def an_old_server(settings: LazySettings, tmp_path: Path) -> Callable[..., None]:
    """Put the older stdio server, lines of JSON that start in a moment, on the list of every host."""

    def offer(**annotations: Any) -> None:
        listed = tmp_path / "tools.json"
        tools = [{"name": "asks_in_turn", "inputSchema": {"type": "object"}, "annotations": annotations}]
        listed.write_text(json.dumps(tools))
        script = str(ROOT / "tests" / "servers" / "raw.py")
        entry = {
            "command": sys.executable,
            "args": [script, "legacy", f"tools={listed}"],
            "env": {"M3_EFFECTS": str(tmp_path / "seen")},
        }
        entries = {**settings.M3.stdio_servers, "old": entry}
        settings.M3 = dataclasses.replace(settings.M3, stdio_servers=entries)

    offer()
    return offer


@pytest.fixture(name="bound")
def a_bound(settings: LazySettings) -> Callable[[float], None]:
    """Say after how many seconds a host is gone, before the first worker starts. Leases are short."""

    def bound(seconds: float) -> None:
        settings.M3 = dataclasses.replace(settings.M3, host_gone_seconds=seconds, lease_seconds=1.5)

    bound(NEVER)
    return bound


@pytest_asyncio.fixture(name="fleet")
async def a_fleet(
    transactional_db: None,
    old_server: Callable[..., None],
    bound: Callable[[float], None],
    settings: LazySettings,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Fleet]:
    """No worker yet; alice is at the desk."""

    def people() -> tuple[Account, User]:
        account = Account.objects.create(name="Acme", slug="acme")
        return account, person("alice", account, Role.OPERATOR)

    if settings.M3.engine == "procrastinate":
        from runs.engines.jobs import Jobs  # its package is not installed everywhere

        engines.use(Jobs())
    account, alice = await db.write(people)
    url = request.getfixturevalue("playground_url") if "playground_effects" in request.fixturenames else ""
    desk = Desk(account, alice, InProcess(PolicyGate()), url)
    fleet = Fleet(desk, settings.M3.data_dir, tmp_path / "seen")
    yield fleet
    await asyncio.to_thread(fleet.end)
    await asyncio.to_thread(db.close_threads)
