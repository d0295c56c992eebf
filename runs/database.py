"""Which database a piece of work belongs to, and the threads that may touch it.

A process usually has one: the installation's. A program that opens a store of its own (`runs.handles`,
`runs.managed_input`) has another beside it, on a SQLite file. Everything in the product talks to Django's
"default" connection, so a thread that works for such a store simply gets its file as its "default": models, services
and transactions need not know. Which store a coroutine works for travels in its context, and from there into threads.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import load_backend

from runs import sqlite
from runs.errors import ModelValidationError
from runs.sqlite import BUSY_TIMEOUT_MS, connection_options

if TYPE_CHECKING:
    from runs.engines.protocol import Engine
    from runs.mcp_client import StdioBinding


WRITERS: Final = 2
"""Writers of a database server: enough for one interpreter, which waits for the server most of the time of a write."""

READERS: Final = 3

_lane: ContextVar[int] = ContextVar("m3_lane", default=0)


class Database:
    """One database with its writer threads, a few readers, and the engine that its wakes go to.

    Writes stand in line, one after the other, at one of the writers: a file has one, because it takes one writer at a
    time; a server has several, and whatever belongs together stands in the same `lane`.
    `path` is a SQLite file of its own; None stands for the database of the settings.
    """

    def __init__(self, path: Path | None = None, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> None:
        self.path = path
        self.busy_timeout_ms = busy_timeout_ms
        self.engine: Engine | None = None
        self.bindings: dict[str, StdioBinding] = {}
        """Stdio entries that the program which opened this adds to the host's list; see `runs.binding.offer`."""
        self.writers = [
            ThreadPoolExecutor(1, thread_name_prefix="m3-writer", initializer=self._bind)
            for _ in range(WRITERS)
        ]
        self.readers = ThreadPoolExecutor(READERS, thread_name_prefix="m3-reader", initializer=self._bind)

    @property
    def writer(self) -> ThreadPoolExecutor:
        """The writer of the calling coroutine's lane."""
        return self.writers[_lane.get() % len(self.writers) if self.on_server else 0]

    @cached_property
    def on_server(self) -> bool:
        """Whether a server keeps the data, not a file."""
        return self.path is None and connection.vendor != "sqlite"

    @property
    def file(self) -> Path | None:
        """The SQLite file, or None where a server keeps the data."""
        if self.path is not None:
            return self.path
        return None if self.on_server else Path(str(connection.settings_dict["NAME"]))

    @property
    def announces(self) -> bool:
        """Whether open pages of this process show this database; hints about another one would mislead them."""
        return self.path is None

    def close_connections(self) -> None:
        """Have the threads close their connections (end of a test, of a store, of the process)."""
        for writer in self.writers:
            writer.submit(connections.close_all).result()
        for waiting in [self.readers.submit(connections.close_all) for _ in range(8)]:
            waiting.result()

    def close(self) -> None:
        """End the threads; nothing may be written through this object any more."""
        self.close_connections()
        for writer in self.writers:
            writer.shutdown()
        self.readers.shutdown()

    def _bind(self) -> None:
        if self.path is not None:
            connections[DEFAULT_DB_ALIAS] = _connection_to(self.path, self.busy_timeout_ms)


DEFAULT = Database()
"""The installation's own database."""

_current: ContextVar[Database] = ContextVar("m3_database", default=DEFAULT)


def stand_in(lane: int) -> None:
    """From here on the writes of the calling task, and of tasks that it starts, come one after the other, each after
    those of the same lane that were asked for before it. Without a word it is lane 0."""
    _lane.set(lane)


def current() -> Database:
    """The database that the calling coroutine or thread works for."""
    return _current.get()


@contextlib.contextmanager
def using(database: Database) -> Iterator[None]:
    """Let everything that starts inside work for `database`; tasks and their boundaries inherit it."""
    token = _current.set(database)
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def file_connection(
    path: str | os.PathLike[str], *, busy_timeout_ms: int = BUSY_TIMEOUT_MS
) -> Iterator[None]:
    """Make `path` this thread's "default" connection for the duration: opened anew, closed at the end.

    Wakes are left to whoever sweeps that file. Not for a thread with a running event loop.
    """
    opened = _connection_to(Path(path), busy_timeout_ms)
    before = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = opened
    try:
        with using(Database(Path(path), busy_timeout_ms=busy_timeout_ms)):
            yield
    finally:
        connections[DEFAULT_DB_ALIAS] = before
        opened.close()


def prepare_file(path: str | os.PathLike[str]) -> None:
    """Create the tables in a SQLite file, or bring them up to date; does nothing if they are.

    Two processes may do so at once: one waits for the other. Raises ModelValidationError, which names the file, for a
    place that cannot be used, a file that is no database, and somebody else's database, in which nothing is changed.
    """
    file = sqlite.file_path(path)
    sqlite.create_private(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        if not is_ours(file):
            fcntl.flock(folder, fcntl.LOCK_EX)  # whoever is about to make the tables is waited for
            if not is_ours(file):
                raise ModelValidationError(
                    f"{file} is a database of another program; nothing in it was changed. Name a file of its own."
                )
        with file_connection(file):
            if is_up_to_date():
                return
            fcntl.flock(folder, fcntl.LOCK_EX)
            if not is_up_to_date():
                call_command("migrate", database=DEFAULT_DB_ALIAS, interactive=False, verbosity=0)
    except DatabaseError as error:
        raise ModelValidationError(f"The SQLite file {file} cannot be used: {error}.") from error
    finally:
        os.close(folder)


_SURE_TABLE = "runs_round"
"""A table that every version of this product has, and that nobody else is likely to have beside Django's own."""


def is_ours(file: Path) -> bool:
    """Whether a SQLite file is this product's, or empty, or one whose first preparation was cut short."""
    found = sqlite.tables_in(file)
    if {MigrationRecorder.Migration._meta.db_table, _SURE_TABLE} <= found:
        return True
    known = connections[DEFAULT_DB_ALIAS].introspection.django_table_names()
    return found <= {*known, MigrationRecorder.Migration._meta.db_table}


def is_up_to_date() -> bool:
    """Whether the calling thread's database has every table that this version needs."""
    executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _connection_to(path: Path, busy_timeout_ms: int) -> BaseDatabaseWrapper:
    settings = {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": connection_options(busy_timeout_ms),
    }
    configured = connections.configure_settings({DEFAULT_DB_ALIAS: settings})[DEFAULT_DB_ALIAS]
    wrapper: BaseDatabaseWrapper = load_backend(configured["ENGINE"]).DatabaseWrapper(
        configured, DEFAULT_DB_ALIAS
    )
    return wrapper
