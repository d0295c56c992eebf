"""Starts the programs that run the tiny run, ours and the peers', one at a time, and talks with them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from benchmarks.installation import own_environment
from benchmarks.processes import PATIENCE, ROOT

PEERS = Path(__file__).parent / "peers"
FASTER_POLL = 0.02
"""Seconds between two looks of a peer that polls, where it is allowed more than its default."""
QUEUE_POLL = 0.05
"""The same where it is a queue that is looked into."""

Command = tuple[Sequence[str], Mapping[str, str]]
"""What to start, and its environment."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """An engine on a database; `start` makes the command, given a folder and the URL of an empty database."""

    name: str
    store: str
    start: Callable[[Path, str], Command] = field(compare=False)
    jitter: float = 0.02
    """Seconds over which the moments of the answers are spread: as long as the engine's polling."""
    costs: int = 1
    """By how much fewer samples are taken, because each takes so long."""
    latency: bool = True
    throughput: bool = True
    needs: Path | None = field(default=None, compare=False)

    @property
    def label(self) -> str:
        return f"{self.name}, {self.store}"


class Program:
    """A running program; `ask` has it do something and waits for what it found."""

    def __init__(self, command: Command, log: Path) -> None:
        args, env = command
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                args,
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._reply()

    def ask(self, do: str, **options: Any) -> Any:
        assert self._process.stdin is not None
        print(json.dumps({"do": do, **options}), file=self._process.stdin, flush=True)
        return self._reply()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _reply(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended:\n{self._log.read_text()[-3000:]}")
        return json.loads(line)


class Stage:
    """A folder, and a PostgreSQL server that is started when it is first wanted."""

    def __init__(self, folder: Path, servers: ExitStack) -> None:
        self._folder, self._servers, self._server = folder, servers, ""

    @property
    def has_postgres(self) -> bool:
        from tests import stores

        return bool(os.environ.get("M3_TEST_POSTGRES_URL")) or stores.postgres_binaries() is not None

    @contextmanager
    def program(self, contender: Contender, *options: str) -> Iterator[Program]:
        """The contender's program on a new database of its own, which is not cleared up until the end."""
        folder = self._folder / uuid.uuid4().hex
        folder.mkdir()
        url = (
            self._new_database()
            if contender.store == "PostgreSQL"
            else f"sqlite:///{folder / 'runs.sqlite3'}"
        )
        command, env = contender.start(folder, url)
        program = Program(([*command, *options], env), folder / "log")
        try:
            yield program
        finally:
            program.close()

    def _new_database(self) -> str:
        name = f"bench_{uuid.uuid4().hex}"
        with psycopg.connect(self._postgres(), autocommit=True) as admin:
            admin.execute(f'CREATE DATABASE "{name}"')
        return urlsplit(self._postgres())._replace(scheme="postgresql", path=f"/{name}").geturl()

    def _postgres(self) -> str:
        from tests import stores

        if not self._server:
            given, binaries = os.environ.get("M3_TEST_POSTGRES_URL"), stores.postgres_binaries()
            if given is None and binaries is None:
                raise RuntimeError("there is no PostgreSQL here")
            self._server = given or self._servers.enter_context(stores.postgres(binaries))  # type: ignore[arg-type]
        return self._server


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    with ExitStack() as servers:
        yield Stage(folder, servers)


def contenders(on: Stage) -> list[Contender]:
    """Whoever can be started here: without PostgreSQL the rows on it are left out, and so is a peer that is missing."""
    stores = ("SQLite", "PostgreSQL") if on.has_postgres else ("SQLite",)
    engines = {"SQLite": "in_process", "PostgreSQL": "procrastinate"}
    found = []
    for store in stores:
        ours = f"M3 Web, {engines[store]}"
        found.append(Contender(name=ours, store=store, start=_ours))
        found += _dbos(store)
        found.append(_peer("LangGraph 1.2, a call", store, "langgraph", []))
        found.append(
            _peer(
                "django-tasks-db, its defaults",
                store,
                "django_tasks",
                ["0"],
                jitter=1.0,
                costs=5,
                throughput=False,
            )
        )
    return [contender for contender in found if contender.needs is None or contender.needs.is_file()]


def _dbos(store: str) -> list[Contender]:
    looking = [str(QUEUE_POLL), "wakes"]
    wakes = _peer("DBOS 3.4, a workflow per wake", store, "dbos", looking, wal=True, latency=False)
    if store == "PostgreSQL":  # it listens, and the answers come from a process of their own
        return [_peer("DBOS 3.4, recv in memory", store, "dbos", ["0"]), wakes]
    defaults = _peer("DBOS 3.4, its defaults", store, "dbos", ["0"], jitter=1.0, costs=5, throughput=False)
    polling = _peer("DBOS 3.4, polling every 20 ms, WAL", store, "dbos", [str(FASTER_POLL)], wal=True)
    return [defaults, polling, wakes]


def _peer(
    name: str, store: str, peer: str, options: Sequence[str], *, wal: bool = False, **more: Any
) -> Contender:
    environment = PEERS / f".venv-{peer}"

    def start(folder: Path, url: str) -> Command:
        if url.startswith("sqlite") and wal:
            _use_wal(url)
        python = str(environment / "bin" / "python")
        return [python, str(PEERS / f"{peer}_program.py"), url, *options], os.environ

    return Contender(name=name, store=store, start=start, needs=environment / ".installed", **more)


def _use_wal(url: str) -> None:
    """A file remembers its mode, so that a peer which leaves it alone gets the faster one."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as made:
        made.execute("PRAGMA journal_mode=WAL")


def _ours(folder: Path, url: str) -> Command:
    env = own_environment(os.environ, folder)
    if not url.startswith("sqlite"):
        env["DATABASE_URL"] = url.replace("postgresql:", "postgres:")
    prepared = subprocess.run(
        [sys.executable, "-m", "benchmarks.prepare"],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        timeout=PATIENCE,
        check=True,
    )
    agent = json.loads(prepared.stdout)["agents"]["asks"]
    return [sys.executable, "-m", "benchmarks.engine_program", str(agent)], env
