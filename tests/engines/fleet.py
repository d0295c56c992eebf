"""The stage of these tests: an installation of real processes on a database of its own, and what is true in it."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.engines.office import Office
from tests.mcp.bindings import PATIENCE, ROOT, free_port, listens, wait_for

START = 120.0
"""Seconds that a process may take to come up on a busy machine."""


@dataclass
class Process:
    """One `manage.py` that serves."""

    process: subprocess.Popen[bytes]
    output: Path
    port: int | None = None

    def text(self) -> str:
        return self.output.read_text()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut does."""
        self.process.kill()
        self.process.wait()

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE)


@dataclass
class Fleet:
    """An installation of one engine on one database."""

    folder: Path
    engine: str
    database: str
    playground: str
    effects: Path
    settings: dict[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    offices: list[Office] = field(default_factory=list)

    @property
    def on_sqlite(self) -> bool:
        return self.database.startswith("sqlite")

    # --- its processes -----------------------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        ours = ("M3_", "DATABASE_", "REDIS_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        own = {
            "DATABASE_URL": self.database,
            "M3_DATA_DIR": str(self.folder),
            "M3_ENGINE": self.engine,
            "M3_ALLOW_PRIVATE_URLS": "1",
            "M3_LEASE_SECONDS": "3",
            "M3_SWEEP_SECONDS": "0.5",
            "M3_SECRET_KEY": "the same for every process of it " * 2,
            "M3_ENCRYPTION_SALT": "the same salt for every process " * 2,
        }
        return {**inherited, **own, **self.settings, **more}

    def worker(self, *options: str, **more: str) -> Process:
        """Something that drives runs: on SQLite only the whole product does. Waits until it works."""
        if self.on_sqlite:
            return self.web("up", **more)
        started = self._start("worker", *options, **more)
        self._until(started, lambda: "drives up to" in started.text(), "a worker")
        return started

    def web(self, command: str = "web", **more: str) -> Process:
        """Pages, API and sockets; waits until they are there."""
        port = free_port()
        started = self._start(command, "--port", str(port), **more)
        started.port = port
        self._until(started, lambda: listens(port), f"manage.py {command}")
        return started

    def office(self) -> Office:
        opened = Office.open(self.environment())
        self.offices.append(opened)
        return opened

    def _start(self, command: str, *options: str, **more: str) -> Process:
        output = self.folder / f"{command}-{len(self.processes)}"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "manage.py", command, *options],
                cwd=ROOT,
                env=self.environment(**more),
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        started = Process(process, output)
        self.processes.append(started)
        return started

    def _until(self, started: Process, there: Any, what: str) -> None:
        wait_for(lambda: there() or started.process.poll() is not None, f"{what} to be up", patience=START)
        assert started.process.poll() is None, started.text()

    def stop(self) -> None:
        """End every process, those that a test has frozen as well."""
        for process in self.processes:
            process.kill()
        for office in self.offices:
            office.close()

    # --- what is true in it --------------------------------------------------------------------------------------

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self.on_sqlite:
            path = self.database.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, timeout=20)) as connection:
                return connection.execute(sql.replace("%s", "?"), values).fetchall()
        with psycopg.connect(self.database) as server:
            return server.execute(sql, values).fetchall()  # type: ignore[arg-type]

    def eventually(self, look: Callable[[], Any], what: str) -> Any:
        """What `look` finds, once it does; a failure shows what the processes have said."""
        try:
            return wait_for(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    def one(self, sql: str, *values: Any) -> Any:
        return self.query(sql, *values)[0][0]

    def waits(self, run: int, kind: str) -> None:
        """Until the run waits for a person in this kind of pause."""
        pending = "select 1 from runs_round where run_id = %s and kind = %s and status = 'pending'"
        self.eventually(lambda: self.query(pending, run, kind), f"run {run} to wait for a person ({kind})")

    def finished(self, run: int) -> str:
        """What the run ended with, once it has."""
        ended = "select output from runs_run where id = %s and status = 'finished'"
        return str(self.eventually(lambda: self.query(ended, run), f"the end of run {run}")[0][0])

    def owner(self, run: int) -> str | None:
        found: str | None = self.one("select lease_owner from runs_run where id = %s", run)
        return found

    def jobs(self) -> list[tuple[Any, ...]]:
        """Jobs of the queue with their runs; none where there is no queue."""
        if self.engine != "procrastinate":
            return []
        return self.query("select id, status, args ->> 'run_id' from procrastinate_jobs order by id")

    def haul(self, name: str) -> dict[str, str]:
        """What a run that hauls has to know: under which name its work is counted, and the file that lets it end."""
        return {"tag": f"{self.folder.name} {name}", "until": str(self.folder / name)}

    def let_go(self, name: str) -> None:
        """The server's work of this name may end."""
        (self.folder / name).touch()

    def at_work(self, name: str) -> int:
        """How often the server began the work of this name."""
        lines = self.effects.read_text().splitlines() if self.effects.exists() else []
        return sum(f'"{self.haul(name)["tag"]}"' in line and "began" in line for line in lines)

    def logs(self) -> str:
        return "\n".join(process.text() for process in self.processes)
