"""The default engine: the run row is the queue, this only wakes its own loop. No table, no service, no poll for work.

One process owns a SQLite database: an OS lock, which even kill -9 releases, refuses a second one and permits
the next to take over every lease at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import uuid
from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import OperationalError, transaction

from runs import binding, clock, database, db, engines, lease, push, sqlite
from runs.engines import offers
from runs.gate import Gate
from runs.webhooks.sender import Sender
from runs.worker.advance import advance
from runs.worker.deadlines import sweep

log = logging.getLogger(__name__)


class AlreadyRunningError(RuntimeError):
    """Another process owns this database."""


class InProcess:
    """Drives every due run of this database as a task on one loop; a parked run is no task and no memory."""

    def __init__(self, gate: Gate) -> None:
        self.owner = f"{os.uname().nodename}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.gate = gate
        self.legs = asyncio.Semaphore(settings.M3.worker_concurrency)
        self.active: dict[int, tuple[asyncio.Task[None], asyncio.Event]] = {}
        self.waking: set[asyncio.Future[None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._lock: BinaryIO | None = None

    # --- Engine, called from any thread ----------------------------------------------------------------------

    def enqueue(self, run_id: int) -> None:
        transaction.on_commit(lambda: self._from_any_thread(run_id), robust=True)

    def _from_any_thread(self, run_id: int) -> None:
        if self.loop is not None:
            with contextlib.suppress(
                RuntimeError
            ):  # the loop is closing; the next start's sweep finds the run
                self.loop.call_soon_threadsafe(self._kick, run_id)

    # --- on the loop --------------------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Run until cancelled. Cancelling stops calls that are under way and leaves every run for the next start."""
        self.loop = asyncio.get_running_loop()
        if database.current().announces:
            push.connect(self.loop)
        engines.use(self)
        webhooks = asyncio.create_task(Sender().serve())
        try:
            if self._lock is not None:
                freed = await db.write(lease.take_over)
                if freed:
                    log.warning("took over %s runs that the last process left behind", freed)
            while True:
                await self._sweep()
                await asyncio.sleep(settings.M3.sweep_seconds)
        finally:
            engines.use(None)
            webhooks.cancel()
            await asyncio.gather(webhooks, self._stop(), return_exceptions=True)

    async def _sweep(self) -> None:
        """Start what is due. A database server that is gone for a while ends nothing: the next sweep looks again."""
        try:
            for run_id in await db.write(sweep):
                self._kick(run_id)
        except OperationalError as error:
            if database.current().file is not None:
                raise
            log.warning("the database server does not answer (%s); trying again", str(error).strip())

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
                f"Another process already works on {path.with_suffix('').name}. Stop it first, or set M3_DATA_DIR."
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

    def _kick(self, run_id: int) -> None:
        """Start driving a run, or tell the task that drives it to look again."""
        if run_id in self.active:
            self.active[run_id][1].set()
            return
        signal = asyncio.Event()
        task = asyncio.ensure_future(self._drive(run_id, signal))
        self.active[run_id] = (task, signal)
        task.add_done_callback(lambda _: self._done(run_id, signal))

    def _done(self, run_id: int, signal: asyncio.Event) -> None:
        self.active.pop(run_id, None)
        if signal.is_set() and self.loop is not None and self.loop.is_running():
            self._kick(run_id)  # a kick that came after the task had given the run back

    async def _drive(self, run_id: int, signal: asyncio.Event) -> None:
        try:
            if await db.read(binding.unreachable, [run_id]):
                return  # it stays due; whoever offers its servers finds it with the first sweep
            wake_at = await advance(run_id, owner=self.owner, gate=self.gate, signal=signal, legs=self.legs)
        except Exception:
            # The lease runs out and the sweep tries again; a run that cannot be driven must not take others along.
            log.exception("run %s could not be driven", run_id)
            signal.clear()
            return
        if wake_at is not None:
            delay = (wake_at - await db.read(clock.now)).total_seconds()
            asyncio.get_running_loop().call_later(max(delay, 0.0), self._end_sleep, run_id)

    def _end_sleep(self, run_id: int) -> None:
        """More punctual than the sweep, which finds the same sleeper if this process is gone by then."""
        task = asyncio.ensure_future(db.write(lease.wake, run_id))
        self.waking.add(task)
        task.add_done_callback(self.waking.discard)

    async def _stop(self) -> None:
        running = [task for task, _ in self.active.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


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
