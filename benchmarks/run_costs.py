"""What one tiny run costs on our engine with nothing else under way: statements, commits, and where the time goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

WARM_UP = 5
PARTS = ("start", "advance to the question", "answer", "advance to the end")


class Counter:
    """Counts what the thread that it is attached in asks of the database, and how long that takes."""

    def __init__(self) -> None:
        self.statements = self.commits = 0
        self.sql = self.commit = 0.0

    @contextmanager
    def attached(self) -> Iterator[None]:
        from django.db import connection

        connection.ensure_connection()
        wrapper, commit = connection.execute_wrapper(self._execute), connection._commit
        connection._commit = lambda: self._commit(commit)
        with wrapper:
            yield
        connection._commit = commit

    def _commit(self, commit: Callable[[], Any]) -> None:
        started = time.perf_counter()
        commit()
        self.commit += time.perf_counter() - started
        self.commits += 1

    def _execute(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            self.sql += time.perf_counter() - started
            self.statements += not sql.startswith("BEGIN")


def costs(people: Any, count: int) -> dict[str, Any]:
    """Drive `count` runs, one after the other; `people` starts and answers them, the worker's part is called directly.

    Gives milliseconds per run: in sum, of that in the driver and in commits, and of each part.
    """
    from approvals.gate import PolicyGate
    from runs.worker.advance import advance

    gate, counter = PolicyGate(), Counter()
    parts = {part: {"ms": 0.0, "statements": 0, "commits": 0} for part in PARTS}

    def measured(part: str, act: Callable[..., Any], *args: Any) -> Any:
        before, started = (counter.statements, counter.commits), time.perf_counter()
        done = act(*args)
        found = parts[part]
        found["ms"] += (time.perf_counter() - started) * 1000 / count
        found["statements"], found["commits"] = counter.statements - before[0], counter.commits - before[1]
        return done

    with _one_thread() as there, asyncio.Runner() as runner:
        attached = counter.attached()
        there(attached.__enter__)
        loop = runner.get_loop()

        def work(run: str) -> None:
            loop.run_until_complete(advance(int(run), owner="costs", gate=gate))

        for number in range(WARM_UP + count):
            if number == WARM_UP:
                counter.sql = counter.commit = 0.0
                for part in parts.values():
                    part["ms"] = 0.0
            run = measured("start", there, people.start)
            measured("advance to the question", work, run)
            measured("answer", there, people.tell, run)
            measured("advance to the end", work, run)
        there(attached.__exit__, None, None, None)
    return {
        "ms": sum(part["ms"] for part in parts.values()),
        "sql": counter.sql * 1000 / count,
        "commit": counter.commit * 1000 / count,
        "parts": parts,
    }


@contextmanager
def _one_thread() -> Iterator[Callable[..., Any]]:
    """One thread for everything, in which it can be counted; gives a way to have things done there."""
    from django.db import connections

    from runs import database

    current = database.current()
    before = current.writers, current.readers
    with ThreadPoolExecutor(1) as thread:
        current.writers, current.readers = [thread], thread
        try:
            yield lambda act, *args: thread.submit(act, *args).result()
        finally:
            current.writers, current.readers = before
            thread.submit(connections.close_all).result()
