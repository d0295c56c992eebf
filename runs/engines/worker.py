"""What every worker does, however it is woken: drive runs, sweep, send webhooks, delete what is old, stop in order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final

from django.conf import settings
from django.db import DatabaseError, OperationalError

from runs import database, db, engines, notices, push
from runs.engines.driver import Driver
from runs.gate import Gate
from runs.webhooks import deliveries, outbox
from runs.webhooks.sender import Sender
from runs.worker.deadlines import sweep
from runs.worker.presence import attend

log = logging.getLogger(__name__)


FORGET_EVERY: Final = 3600.0
"""Seconds between two looks for what is too old to be kept."""

FORGET_AT_ONCE: Final = 500
"""Rows that one transaction deletes."""


class Worker:
    """Serves the current database on one loop. How wakes come to it is the business of `InProcess` and
    `ProcrastinateWorker`."""

    def __init__(self, gate: Gate, places: int | None = None) -> None:
        self.driver = Driver(gate, places or settings.M3.worker_concurrency)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        self._within = 0.0

    @property
    def owner(self) -> str:
        """The name under which it holds leases."""
        return self.driver.owner

    @property
    def active(self) -> dict[int, Any]:
        """The runs that are being driven here, by id."""
        return self.driver.active

    async def serve(self) -> None:
        """Run until `end` or until cancelled. Cancelling stops calls that are under way; every run is given back."""
        self.loop = asyncio.get_running_loop()
        if database.current().announces:
            push.connect(self.loop)
        before = database.current().engine
        self._take_wakes()
        beside = [asyncio.create_task(work) for work in (Sender().serve(), attend(), *self._beside())]
        try:
            await self._begin()
            while not self._ending.is_set():
                await self._sweep()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(settings.M3.sweep_seconds):
                        await self._ending.wait()
            await self._take_no_more()
            await self.driver.stop(self._within)
        finally:
            engines.use(None if isinstance(before, Worker) else before)
            self._ending.set()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, self._take_no_more(), self.driver.stop(), return_exceptions=True)
            await self._leave()

    @property
    def ending(self) -> bool:
        """Whether it was told to end."""
        return self._ending.is_set()

    def end(self, within: float) -> None:
        """Stop: take nothing new, let calls that are at work end for so many seconds, give back every run."""
        self._within = within
        self._ending.set()

    # --- what an engine adds -----------------------------------------------------------------------------------

    def _take_wakes(self) -> None:
        """Become the engine of the current database, where wakes have to come to this process."""

    def _beside(self) -> list[Coroutine[Any, Any, None]]:
        """What runs beside the driving until the end."""
        if not notices.available():
            return [forget_old()]
        heard: dict[str, Callable[[str], None]] = {
            notices.WAKES: lambda run_id: self.driver.tell(int(run_id)),
            notices.WEBHOOKS: lambda _: outbox.look(),
        }
        return [forget_old(), notices.listen(heard, self._may_have_missed)]

    async def _begin(self) -> None:
        """Before the first sweep."""

    async def _take_no_more(self) -> None:
        """The worker ends: nothing more is to come. Called again does nothing."""

    async def _leave(self) -> None:
        """After every run was given back."""

    # --- by the clock ------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        """Start what is due. A database server that is gone for a while ends nothing: the next sweep looks again."""
        try:
            due = await db.steps(sweep)
            # In any order: those that this worker must leave to others keep none from it.
            random.shuffle(due)
            for run_id in due[: self._most()]:
                self.driver.kick(run_id)
        except OperationalError as error:
            if database.current().file is not None:
                raise
            log.warning("the database server does not answer (%s); trying again", str(error).strip())

    def _most(self) -> int | None:
        """How many due runs a sweep may start here; None for all. Where there are other workers, no more than there are
        places for: the others have some too."""
        return None if database.current().file is not None else max(self.driver.free, 0)

    def _may_have_missed(self) -> None:
        """Words from others were lost for a while: every run that is driven here looks again, and the sender."""
        outbox.look()
        for run_id in list(self.driver.active):
            self.driver.tell(run_id)


async def forget_old() -> None:
    """Delete deliveries of webhooks that are older than their log is kept, now and every hour, until cancelled."""
    while True:
        try:
            while await db.write(deliveries.forget_old, FORGET_AT_ONCE) == FORGET_AT_ONCE:
                pass  # a short transaction each, so that nobody waits long behind it
        except DatabaseError:
            log.warning("old deliveries of webhooks could not be deleted; trying again later", exc_info=True)
        await asyncio.sleep(FORGET_EVERY)
