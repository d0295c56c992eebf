"""What the machine can do at best, measured between the samples of a benchmark, so that noise meets both alike."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext

from benchmarks.figures import Series
from benchmarks.processes import free_port, listening

LOOKS = 3
"""Measurements of each yardstick beside every sample."""

_HINT = json.dumps({"type": "run", "run_id": 1, "status": "running_turn", "seq": 1})
"""What is echoed has the size of what the product pushes."""


class Yardsticks:
    """A row of a bare SQLite commit and a message to a bare Channels echo, again and again."""

    def __init__(self, database: sqlite3.Connection, context: BrowserContext, port: int) -> None:
        self._database = database
        self._page, self._address = context.new_page(), f"ws://127.0.0.1:{port}/"
        self._page.goto(f"http://127.0.0.1:{port}/")
        self._commits: list[float] = []
        self._echoes: list[float] = []

    def look(self) -> None:
        for _ in range(LOOKS):
            self._commits.append(self._commit())
            self._echoes.append(self._echo())

    @property
    def commit(self) -> Series:
        return Series(name="bare SQLite commit", values=self._commits)

    @property
    def echo(self) -> Series:
        return Series(name="bare Channels echo, browser to server and back", values=self._echoes)

    def _commit(self) -> float:
        started = time.perf_counter()
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute("INSERT INTO line (text) VALUES (?)", (_HINT,))
        self._database.execute("COMMIT")
        return (time.perf_counter() - started) * 1000

    def _echo(self) -> float:
        return float(self._page.evaluate("([to, text]) => bench.echo(to, text)", [self._address, _HINT]))


@contextmanager
def yardsticks(folder: Path, context: BrowserContext) -> Iterator[Yardsticks]:
    """Ready to look: `folder` is on the disk of the installation that is measured."""
    port = free_port()
    log = folder / "echo.log"
    with (
        closing(sqlite3.connect(folder / "yardstick.sqlite3", isolation_level=None)) as database,
        listening(["-m", "benchmarks.echo_server", str(port)], port, log),
    ):
        # The pragmas of m3web.settings.
        database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
        database.execute("CREATE TABLE line (id INTEGER PRIMARY KEY, text TEXT)")
        yield Yardsticks(database, context, port)
