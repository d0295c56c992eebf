"""Whoever writes to a SQLite file from this process waits in one line: first come, first served.

SQLite's busy handler asks again after a pause that grows, so that among many writers the one who has waited longest
has the smallest chance. Here a connection takes its turn before it begins a transaction that may write, and gives it
back when SQLite says that the transaction is over, however that came about. A turn is courtesy: what keeps two
transactions apart is SQLite's own lock, also against other processes, which do not stand in this line.

Plain module: the settings read it before Django is there.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterator
from functools import cache
from types import TracebackType
from typing import Any, Literal
from weakref import WeakValueDictionary

_READS = ("SELECT", "PRAGMA", "EXPLAIN", "BEGIN D")
"""How a statement begins that needs no turn. BEGIN DEFERRED is for whoever only reads, all of it as of one moment."""


class Line:
    """Those who want to write to one file.

    A connection that is only collected as garbage gives its turn back from inside whatever this thread does at the
    moment. So the lock can be taken twice by one thread, and the turn may come free between any two steps here. It
    cannot be taken between them, and nobody gives back a turn of somebody else.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def take(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds for a turn; whether it came."""
        called = threading.Lock()
        called.acquire()
        with self._lock:
            self._waiting.append(called)
            self._call_next()
        try:
            if called.acquire(timeout=timeout):
                return True
        except BaseException:
            if not self._leave(called):
                self.give_back()
            raise
        return not self._leave(called)

    def give_back(self) -> None:
        """End the turn that the caller has."""
        with self._lock:
            self._taken = False
            self._call_next()

    def _call_next(self) -> None:
        if self._waiting and not self._taken:
            self._taken = True
            self._waiting.popleft().release()

    def _leave(self, called: threading.Lock) -> bool:
        """Stop waiting; False if the turn has come meanwhile."""
        with self._lock:
            try:
                self._waiting.remove(called)
            except ValueError:
                return False
        return True


_lines: WeakValueDictionary[str, Line] = WeakValueDictionary()
_lines_lock = threading.Lock()


def line_of(database: str | os.PathLike[str]) -> Line | None:
    """Where writers of a file wait, the same for everybody who has it open; None for what is in memory."""
    name = os.fspath(database)
    if not name or name == ":memory:" or name.startswith("file:"):
        return None
    with _lines_lock:
        return _lines.setdefault(os.path.realpath(name), Line())


def _forget() -> None:
    """A forked process has its own line: whoever waits in the parent is not here."""
    global _lines, _lines_lock
    _lines, _lines_lock = WeakValueDictionary(), threading.Lock()


os.register_at_fork(after_in_child=_forget)


class InTurn(sqlite3.Connection):
    """A connection whose cursors write when its turn has come; `sqlite3.connect(..., factory=InTurn)`.

    Its own `execute` does not wait: Django sets pragmas by it, and nothing else.
    """

    _has_turn = False

    def __init__(self, database: str | os.PathLike[str], timeout: float = 5.0, **options: Any) -> None:
        self._line, self._patience = line_of(database), timeout
        super().__init__(database, timeout=timeout, **options)

    @contextlib.contextmanager
    def turn_for(self, statement: str) -> Iterator[None]:
        """Run a statement inside; raises what SQLite raises for one that waited for `timeout` seconds in vain."""
        if self._line is not None and not self._has_turn and not self.in_transaction and _writes(statement):
            if not self._line.take(self._patience):
                raise _locked()
            self._has_turn = True
        try:
            yield
        finally:
            self._end_turn()

    def cursor(self, factory: Any = sqlite3.Cursor) -> Any:
        """A cursor of the class `factory` whose statements wait for the turn."""
        return super().cursor(_in_turn(factory))

    def commit(self) -> None:
        try:
            super().commit()
        finally:
            self._end_turn()

    def rollback(self) -> None:
        try:
            super().rollback()
        finally:
            self._end_turn()

    def close(self) -> None:
        super().close()
        self._give_back()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        try:
            return super().__exit__(kind, error, trace)
        finally:
            self._end_turn()

    def __del__(self) -> None:
        if self._has_turn:  # its thread ended inside a transaction
            with contextlib.suppress(sqlite3.Error):
                self.close()
            self._give_back()

    def _end_turn(self) -> None:
        if self._has_turn and not self.in_transaction:
            self._give_back()

    def _give_back(self) -> None:
        if self._has_turn and self._line is not None:
            self._has_turn = False
            self._line.give_back()


class _Statements:
    """What is put in front of a cursor's class."""

    connection: InTurn

    def execute(self, statement: str, *parameters: Any) -> Any:
        with self.connection.turn_for(statement):
            return super().execute(statement, *parameters)  # type: ignore[misc]

    def executemany(self, statement: str, *parameters: Any) -> Any:
        with self.connection.turn_for(statement):
            return super().executemany(statement, *parameters)  # type: ignore[misc]


@cache
def _in_turn(factory: type[sqlite3.Cursor]) -> type[sqlite3.Cursor]:
    return type(factory.__name__, (_Statements, factory), {})


def _writes(statement: str) -> bool:
    return not statement.lstrip()[:7].upper().startswith(_READS)


def _locked() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_BUSY, "SQLITE_BUSY"
    return error
