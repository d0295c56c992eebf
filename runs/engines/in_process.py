"""The default engine: the run row is the queue, this only wakes its own loop. No table, no service, no poll for work.

One process owns a SQLite database: an OS lock, which even kill -9 releases, refuses a second one and permits
the next to take over every lease at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import fcntl
import logging
import os
import uuid
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import transaction

from runs import database, db, engines, lease, push
from runs.gate import Gate
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
        self._lock: IO[str] | None = None

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
        try:
            if self._lock is not None:
                freed = await db.write(lease.take_over)
                if freed:
                    log.warning("took over %s runs that the last process left behind", freed)
            while True:
                for run_id in await db.write(sweep):
                    self._kick(run_id)
                await asyncio.sleep(settings.M3.sweep_seconds)
        finally:
            engines.use(None)
            await self._stop()

    def lock(self) -> None:
        """Own the database file; raises AlreadyRunningError if another process does. Nothing to own elsewhere."""
        owned = database.current().file
        if owned is None:
            return
        path = Path(f"{owned}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise AlreadyRunningError(
                f"Another process already works on {path.with_suffix('').name}. Stop it first, or set M3_DATA_DIR."
            ) from error
        self._lock = file

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
            wake_at = await advance(run_id, owner=self.owner, gate=self.gate, signal=signal, legs=self.legs)
        except Exception:
            # The lease runs out and the sweep tries again; a run that cannot be driven must not take others along.
            log.exception("run %s could not be driven", run_id)
            signal.clear()
            return
        if wake_at is not None:
            delay = (wake_at - dt.datetime.now(dt.UTC)).total_seconds()
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
