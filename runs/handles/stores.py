"""Where executions are kept: a SQLite file of a program's own, or the installation's database."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from functools import cached_property
from pathlib import Path

from runs import database, db
from runs.database import Database
from runs.errors import ModelValidationError, SessionBusyError, SessionClosedError
from runs.managed_input import DjangoManagedInputStore, ManagedInputStore, SQLiteManagedInputStore
from runs.sqlite import file_path

PROGRAMS = "python"
"""The account that executions of programs belong to unless another is named."""


class BaseStore:
    """What a kit needs of a store. Kits use it one after the other or together; close it after them."""

    persistent = True
    """Whether its executions outlive the program, which managed input needs (C4)."""

    def __init__(self, opened: Database, account: str | None) -> None:
        self.database = opened
        self.account = account
        self._kits = 0
        self._closed = False
        self._guard = threading.Lock()

    async def prepare(self) -> None:
        """Make the database ready; called by a kit on its own loop before anything else."""
        raise NotImplementedError

    def close(self) -> None:
        """Give its connections back. Again does nothing. Raises SessionBusyError while a kit is open on it."""
        with self._guard:
            if self._kits:
                raise SessionBusyError("A kit still works on this store. Close the kit first.")
            if self._closed:
                return
            self._closed = True
        self._release()

    def attach(self) -> None:
        """A kit begins to use it. Raises SessionClosedError after `close`."""
        with self._guard:
            if self._closed:
                raise SessionClosedError("The store is closed. Make a new one with the same path.")
            self._kits += 1

    def detach(self) -> None:
        """That kit has ended."""
        with self._guard:
            self._kits -= 1

    def _release(self) -> None:
        raise NotImplementedError


class SQLiteExecutionStore(BaseStore):
    """Executions in a SQLite file, made on first use, for its owner alone. The folder must exist.

    A `.lock` file beside it says which process drives its executions; `-wal` and `-shm` are SQLite's own. Raises
    ModelValidationError for what is no path of a file; what only looking shows is raised on first use.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = file_path(path)
        super().__init__(Database(self.path), None)

    async def prepare(self) -> None:
        await asyncio.get_running_loop().run_in_executor(
            self.database.writer, database.prepare_file, self.path
        )

    @cached_property
    def managed_input_store(self) -> ManagedInputStore:
        """The rounds of this file; reading them starts nothing (C37, C47)."""
        return SQLiteManagedInputStore(self.path)

    def _release(self) -> None:
        self.database.close()


class PrivateStore(SQLiteExecutionStore):
    """What a kit without a store uses: a file that is gone when the kit closes."""

    persistent = False

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="m3-kit-")
        super().__init__(Path(self._folder.name) / "executions.sqlite")

    def _release(self) -> None:
        super()._release()
        self._folder.cleanup()


class ExecutionStore(BaseStore):
    """The database of the installation, where the pages show what the program starts.

    `account` is the slug of the account that the executions belong to; None stands for one that is made for
    programs. `using` names the database in the settings; there is one. Raises ModelValidationError for another.
    """

    def __init__(self, using: str = "default", *, account: str | None = None) -> None:
        if using != "default":
            raise ModelValidationError(f"There is no database {using!r}; the installation's is “default”.")
        super().__init__(database.DEFAULT, account)

    async def prepare(self) -> None:
        if not await db.read(database.is_up_to_date):
            raise ModelValidationError("The database lacks tables of this version. Run: manage.py migrate")

    @cached_property
    def managed_input_store(self) -> ManagedInputStore:
        """The rounds of the installation."""
        return DjangoManagedInputStore()

    def _release(self) -> None:
        """The installation's connections are not this object's to close."""
