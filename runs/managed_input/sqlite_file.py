"""`SQLiteManagedInputStore`: the same store on a SQLite file of its own."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from runs.database import file_connection, prepare_file
from runs.managed_input.store import DjangoManagedInputStore, refuse_on_loop
from runs.sqlite import file_path


class SQLiteManagedInputStore(DjangoManagedInputStore):
    """Rounds in the SQLite file `database`, whose tables are made if they are not there.

    Every operation opens a connection and closes it, so there is nothing to close, and a new store on the same file
    goes on where the last one stopped; opening one starts nothing (C47). `busy_timeout_ms` is how long an operation
    waits for another one's transaction, in milliseconds. Raises ValueError for a negative one, and ModelValidationError
    for a file that cannot be used or is another program's. In a thread with a running event loop it raises
    ManagedInputStateError.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        *,
        busy_timeout_ms: int = 5000,
        clock: Callable[[], dt.datetime] | None = None,
    ) -> None:
        super().__init__(clock=clock)
        if busy_timeout_ms < 0:
            raise ValueError("busy_timeout_ms must not be negative.")
        self._file = file_path(database)
        self._busy_timeout_ms = busy_timeout_ms
        refuse_on_loop()
        prepare_file(self._file)

    def _database(self) -> AbstractContextManager[None]:
        refuse_on_loop()
        return file_connection(self._file, busy_timeout_ms=self._busy_timeout_ms)
