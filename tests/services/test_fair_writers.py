"""Writers of one process wait in one line for their turn at a SQLite file (design section 6)."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction

from runs import races
from runs.database import file_connection
from runs.sqlite import connection_options
from runs.sqlite_turns import InTurn, Line, line_of
from tests.mcp.bindings import wait_for

GREEDY = 4
"""Writers that write as fast as they can."""
AGAIN = 20
"""How often each of them does."""


@pytest.fixture
def file(db: None, tmp_path: Path) -> Path:
    path = tmp_path / "writers.sqlite3"
    with file_connection(path), connection.cursor() as cursor:
        cursor.execute("CREATE TABLE word (text TEXT UNIQUE)")
        cursor.execute("INSERT INTO word VALUES ('taken')")
    return path


@pytest.fixture
def line(file: Path) -> Line:
    found = line_of(file)
    assert found is not None
    return found


@pytest.fixture
def holder(file: Path) -> Iterator[sqlite3.Connection]:
    """Somebody in the middle of a transaction."""
    with closing(sqlite3.connect(file, isolation_level=None, factory=InTurn)) as opened:
        opened.cursor().execute("BEGIN IMMEDIATE")
        yield opened


def write(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO word VALUES (%s)", [text])


def in_thread(file: Path, job: Callable[[], Any], *, patience: int = 20_000) -> threading.Thread:
    def work() -> None:
        with file_connection(file, busy_timeout_ms=patience):
            job()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def free(line: Line) -> bool:
    """Whether nobody has the turn."""
    if came := line.take(0):
        line.give_back()
    return came


def test_who_comes_late_is_next_after_those_who_stood_there_before(
    file: Path, line: Line, holder: sqlite3.Connection
) -> None:
    served: list[str] = []

    def greedy(name: str) -> None:
        for number in range(AGAIN):
            with transaction.atomic():
                served.append(name)
                write(f"{name} {number}")

    def late() -> None:
        write("late")  # one statement without a transaction around it
        served.append("late")

    names = [f"greedy {number}" for number in range(GREEDY)]
    threads = []
    for place, name in enumerate(names, start=1):
        threads.append(in_thread(file, lambda name=name: greedy(name)))  # type: ignore[misc]
        wait_for(lambda place=place: len(line) == place, f"{name} to stand in line")  # type: ignore[misc]
    threads.append(in_thread(file, late))
    wait_for(lambda: len(line) == GREEDY + 1, "the latecomer to stand in line")
    holder.rollback()
    for thread in threads:
        thread.join()

    assert served[:GREEDY] == names
    # It writes its name down after its turn, when the next one may have begun already.
    assert "late" in served[: GREEDY + 2]
    assert len(served) == GREEDY * AGAIN + 1


def test_greedy_writers_take_turns_all_the_way(file: Path, line: Line, holder: sqlite3.Connection) -> None:
    """Whoever has written stands in line again before the next one is done, so nobody writes twice in a row."""
    served: list[str] = []

    def greedy(name: str) -> None:
        for number in range(AGAIN):
            with transaction.atomic():
                served.append(name)
                write(f"{name} {number}")
                wait_for(lambda: len(line) or len(served) > (GREEDY - 1) * AGAIN, "somebody else to come")

    threads = [in_thread(file, lambda name=name: greedy(name)) for name in "abcd"]  # type: ignore[misc]
    wait_for(lambda: len(line) == GREEDY, "all to stand in line")
    holder.rollback()
    for thread in threads:
        thread.join()

    together = served[: (GREEDY - 1) * AGAIN]
    assert not [pair for pair in pairwise(together) if pair[0] == pair[1]]


def commits() -> None:
    with transaction.atomic():
        write("a")


def commits_a_savepoint() -> None:
    with transaction.atomic():
        with transaction.atomic():
            write("a")
        with pytest.raises(IntegrityError), transaction.atomic():
            write("taken")


def fails() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        write("taken")


def writes_alone() -> None:
    write("a")


def fails_alone() -> None:
    with pytest.raises(IntegrityError):
        write("taken")


def is_no_sql() -> None:
    with pytest.raises(DatabaseError, match="syntax"), connection.cursor() as cursor:
        cursor.execute("INVENT")


def closes_amid_a_transaction() -> None:
    connection.set_autocommit(False)
    write("a")
    connection.close()


def commits_by_hand() -> None:
    connection.set_autocommit(False)
    write("a")
    connection.commit()


def rolls_back_by_hand() -> None:
    connection.set_autocommit(False)
    write("a")
    connection.rollback()


def is_rolled_back_by_sqlite() -> None:
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT OR ROLLBACK INTO word VALUES ('taken')")


def writes_many() -> None:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO word VALUES (%s)", [("a",), ("b",)])


@pytest.mark.parametrize(
    "ends",
    [
        commits,
        commits_a_savepoint,
        fails,
        writes_alone,
        fails_alone,
        is_no_sql,
        closes_amid_a_transaction,
        commits_by_hand,
        rolls_back_by_hand,
        is_rolled_back_by_sqlite,
        writes_many,
    ],
)
def test_a_turn_ends_with_its_transaction(file: Path, line: Line, ends: Callable[[], None]) -> None:
    with file_connection(file):
        ends()
        assert free(line), "while the connection stays open"


def test_a_turn_lasts_as_long_as_the_transaction(file: Path, line: Line) -> None:
    with file_connection(file), transaction.atomic():
        assert not free(line)
        with transaction.atomic():
            write("a")
        assert not free(line)


def test_a_block_of_python_ends_it_too(file: Path, line: Line) -> None:
    with closing(sqlite3.connect(file, factory=InTurn)) as opened:
        with opened:
            opened.cursor().execute("INSERT INTO word VALUES ('a')")
            assert not free(line)
        assert free(line)


def test_who_is_gone_amid_a_transaction_has_no_turn_any_more(file: Path, line: Line) -> None:
    def begin_and_vanish() -> None:
        abandoned = sqlite3.connect(file, check_same_thread=False, **connection_options_of_python())
        abandoned.cursor().execute("BEGIN IMMEDIATE")
        assert not free(line)

    thread = threading.Thread(target=begin_and_vanish)
    thread.start()
    thread.join()
    gc.collect()

    with file_connection(file, busy_timeout_ms=1):
        write("after it")
    assert free(line)


def connection_options_of_python() -> dict[str, Any]:
    """What of the product's options is not Django's own."""
    return {name: value for name, value in connection_options().items() if name in ("factory", "timeout")}


def test_a_process_outside_the_line_is_waited_for_and_no_turn_kept(file: Path, line: Line) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as outside:
        outside.execute("BEGIN IMMEDIATE")
        with file_connection(file, busy_timeout_ms=1):
            with pytest.raises(OperationalError, match="locked"), transaction.atomic():
                write("never")
            assert free(line)
            outside.execute("ROLLBACK")
            write("then")


def test_who_waits_too_long_is_told_that_the_file_is_locked(
    file: Path, line: Line, holder: sqlite3.Connection
) -> None:
    """What becomes an answer that says "try again" (tests of `runs.races`)."""
    with file_connection(file, busy_timeout_ms=1):
        with pytest.raises(OperationalError, match="database is locked") as told, transaction.atomic():
            write("never")
        assert races.refused_for_now(told.value)

        assert len(line) == 0, "who gave up stands in line no more"
        holder.rollback()
        write("then")
    assert free(line)


def test_who_only_reads_needs_no_turn(file: Path, holder: sqlite3.Connection) -> None:
    with file_connection(file, busy_timeout_ms=1), connection.cursor() as cursor:
        assert cursor.execute("SELECT text FROM word").fetchall() == [("taken",)]


def test_a_file_has_one_line_by_whatever_name(file: Path, line: Line, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite3"
    link.symlink_to(file)
    assert line_of(str(link)) is line is line_of(os.path.relpath(file))
    assert line_of(tmp_path / "other.sqlite3") is not line


@pytest.mark.parametrize("name", [":memory:", "file:words?mode=memory&cache=shared", ""])
def test_what_is_in_memory_has_no_line(name: str) -> None:
    assert line_of(name) is None
    with closing(sqlite3.connect(name, uri=True, factory=InTurn)) as opened:
        opened.execute("CREATE TABLE word (text TEXT)")
        opened.execute("INSERT INTO word VALUES ('a')")
        opened.commit()


def test_a_forked_process_waits_for_nobody_in_its_parent(file: Path, line: Line) -> None:
    assert line.take(0)
    try:
        child = os.fork()
        if child == 0:
            own = line_of(file)
            os._exit(0 if own is not None and own.take(0) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        line.give_back()


def test_who_is_interrupted_while_waiting_keeps_nothing(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        """A lock that is called, and interrupted before its owner knows."""

        def acquire(self, timeout: float | None = None) -> bool:
            if timeout is not None:
                raise KeyboardInterrupt
            return True

        def release(self) -> None:
            """Called."""

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Lock", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            line.take(1)
    assert free(line)
