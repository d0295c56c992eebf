"""The default engine: the run row is the queue, this only wakes its own loop. No table, no service, no poll for work.

One process owns a SQLite database: an OS lock, which even kill -9 releases, refuses a second one and permits
the next to take over every lease at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from pathlib import Path
from typing import BinaryIO

from django.db import transaction

from runs import database, db, engines, lease, sqlite
from runs.engines import offers
from runs.engines.worker import Worker
from runs.gate import Gate

log = logging.getLogger(__name__)


class AlreadyRunningError(RuntimeError):
    """Another process owns this database."""


class InProcess(Worker):
    """Drives every due run of this database; wakes come from the threads of this process, and by the sweep."""

    def __init__(self, gate: Gate, places: int | None = None) -> None:
        super().__init__(gate, places)
        self._lock: BinaryIO | None = None

    # --- Engine, called from any thread ----------------------------------------------------------------------

    def enqueue(self, run_id: int) -> None:
        transaction.on_commit(lambda: self._from_any_thread(run_id), robust=True)

    def _from_any_thread(self, run_id: int) -> None:
        if self.loop is not None:
            with contextlib.suppress(
                RuntimeError
            ):  # the loop is closing; the next start's sweep finds the run
                self.loop.call_soon_threadsafe(self.driver.kick, run_id)

    # --- on the loop --------------------------------------------------------------------------------------------

    def _take_wakes(self) -> None:
        engines.use(self)

    async def _begin(self) -> None:
        if self._lock is not None:
            freed = await db.write(lease.take_over)
            if freed:
                log.warning("took over %s runs that the last process left behind", freed)

    # --- the database file ---------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Own the database file; raises AlreadyRunningError if another process does. Nothing to own elsewhere."""
        path, owned = lock_file(), database.current().file
        if path is None or owned is None:
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sqlite.create_private(owned)  # before its first connection, which would leave it to the umask
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise AlreadyRunningError(
                f"Another process already works on {path.with_suffix('').name}. Stop it first."
            ) from error
        self._lock = file
        self.announce()

    def announce(self) -> None:
        """Write what this process offers into the lock file, for those that submit without driving runs."""
        if self._lock is None:
            return
        line = offers.to_json(offers.here()).encode() + b"\n"
        # In one piece over the old line and never truncated first: a reader finds the one or the other.
        os.pwrite(self._lock.fileno(), line, 0)
        os.ftruncate(self._lock.fileno(), len(line))

    def unlock(self) -> None:
        """Leave the database file to the next process; only after `serve` has ended."""
        if self._lock is not None:
            os.ftruncate(self._lock.fileno(), 0)
            self._lock.close()
            self._lock = None


def lock_file() -> Path | None:
    """The file whose lock says who drives the runs of the current database; None where leases alone do."""
    owned = database.current().file
    return Path(f"{owned}.lock") if owned is not None else None


def offered() -> offers.Offers:
    """What the process that holds the current database's lock wrote there."""
    path = lock_file()
    try:
        return offers.from_json(path.read_text().partition("\n")[0]) if path is not None else offers.Offers()
    except FileNotFoundError:
        return offers.Offers()
