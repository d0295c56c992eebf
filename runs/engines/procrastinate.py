"""A worker of a fleet: it takes the jobs that carry wakes (`runs.engines.jobs`), beside any number of others."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError
from procrastinate import App, PsycopgConnector
from procrastinate.contrib.django import connector_params
from procrastinate.exceptions import ProcrastinateException
from procrastinate.manager import JobManager
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from runs import clock, db, engines
from runs.engines.jobs import QUEUE, TASK, Jobs
from runs.engines.worker import Worker
from runs.gate import Gate
from runs.models import Run

log = logging.getLogger(__name__)

KEPT_HOURS: Final = 24
"""How long a job that ended without being deleted is kept."""

LOOK_EVERY: Final = 10.0
"""Seconds between two looks for jobs whose notice was lost."""

PAUSE: Final = 1.0
"""Seconds before a queue that ended is opened again."""

ORDERLY: Final = 5.0
"""Seconds that the queue may take to end in order, or to find a connection."""


class ProcrastinateWorker(Worker):
    """Takes jobs while it has places, and drives their runs. A job lasts as long as its run needs a place.

    The queue ends whenever PostgreSQL restarts; it is opened again until the worker ends, and meanwhile the sweep finds
    what is due.
    """

    def __init__(self, gate: Gate, places: int | None = None) -> None:
        super().__init__(gate, places)
        self._jobs = Jobs()
        self._queue: asyncio.Task[None] | None = None

    def _take_wakes(self) -> None:
        engines.use(self._jobs)

    async def _begin(self) -> None:
        self._queue = asyncio.create_task(self._serve_queue(), name="m3-queue")

    async def _take_no_more(self) -> None:
        if self._queue is not None:
            self._queue.cancel()
            await asyncio.wait({self._queue}, timeout=ORDERLY)

    async def _leave(self) -> None:
        """Wake other workers for what was left unfinished here; without it they would find it by their sweep."""
        with contextlib.suppress(DatabaseError):
            await db.write(_wake_others, self._jobs, frozenset(self.driver.left))

    async def _serve_queue(self) -> None:
        while True:
            try:
                app = App(connector=_connector())
                app.task(name=TASK, queue=QUEUE)(self._advance)
                async with app.open_async(), self._tidied(app.job_manager):
                    await app.run_worker_async(**self._options())
                log.warning("the queue has ended; opening it again")
            except Exception as error:
                log.warning("the queue has ended (%s); opening it again", str(error).strip())
            await asyncio.sleep(PAUSE)

    @contextlib.asynccontextmanager
    async def _tidied(self, manager: JobManager) -> AsyncIterator[None]:
        """Keep the queue tidy while it is open."""
        tidying = asyncio.create_task(self._tidy(manager))
        try:
            yield
        finally:
            tidying.cancel()
            await asyncio.gather(tidying, return_exceptions=True)

    async def _tidy(self, manager: JobManager) -> None:
        """Give jobs of dead workers to others, and delete what an ended job left behind (one that was cancelled by
        hand, say): procrastinate does neither by itself."""
        silent = settings.M3.lease_seconds
        while True:
            try:
                await manager.prune_stalled_workers(silent)
                for job in await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=silent):
                    with contextlib.suppress(ProcrastinateException):  # another worker was quicker
                        await manager.retry_job(job)
                await manager.delete_old_jobs(
                    nb_hours=KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
                )
            except ProcrastinateException as error:
                log.info("the queue could not be tidied (%s); trying again", str(error).strip())
            await asyncio.sleep(silent)

    async def _advance(self, run_id: int) -> None:
        """One job. A worker that ends leaves the rest to `Driver.stop`."""
        rests = asyncio.ensure_future(self.driver.kick(run_id).rests.wait())
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({rests, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rests.cancel()
            ending.cancel()

    def _options(self) -> dict[str, Any]:
        """Heartbeats go by the lease, so that a dead worker's job and its runs are freed at the same time."""
        return {
            "queues": [QUEUE],
            "concurrency": self.driver.places,
            "install_signal_handlers": False,
            "delete_jobs": "always",
            "fetch_job_polling_interval": LOOK_EVERY,
            "update_heartbeat_interval": settings.M3.lease_seconds / 3,
            "stalled_worker_timeout": settings.M3.lease_seconds,
            "shutdown_graceful_timeout": 1.0,
        }


def _wake_others(jobs: Jobs, run_ids: Collection[int]) -> None:
    for run_id in Run.objects.due(clock.now()).filter(pk__in=run_ids).values_list("pk", flat=True):
        jobs.enqueue(run_id)


def _connector() -> PsycopgConnector:
    """The queue's own connections. Each statement is a transaction by itself, which is all that the queue asks for, and
    takes one round trip instead of three. A broken connection ends the queue, which is then opened again; it is not
    asked before every statement whether it is whole."""
    return PsycopgConnector(
        pool_factory=lambda **options: AsyncConnectionPool(**{**options, "check": None}),
        kwargs=_parameters(),
        configure=_commit_each,
        min_size=1,
        max_size=2,
        timeout=ORDERLY,
    )


async def _commit_each(made: AsyncConnection[Any]) -> None:
    await made.set_autocommit(True)


def _parameters() -> dict[str, Any]:
    """How Django connects, except that statements may be prepared at once, and that nothing is waited for on the disk:
    a server that falls forgets at worst that a job was taken or done, and a wake too many does no harm. Jobs are
    written elsewhere, by whoever wakes a run."""
    known = {name: value for name, value in connector_params().items() if name != "prepare_threshold"}
    return {**known, "options": f"{known.get('options', '')} -c synchronous_commit=off".strip()}
