"""Driving runs as tasks of one loop, whichever engine says which: a parked run is no task and no memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError

from runs import clock, database, db, hosts, lease, notices
from runs.errors import SessionBusyError
from runs.gate import Gate
from runs.models import Run
from runs.worker.advance import advance

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Driven:
    """A run that is being driven here."""

    signal: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when something about the run has changed."""
    rests: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the run needs no place any more: it was given back, or a live session of it waits for a person."""
    task: asyncio.Future[None] | None = None


class Driver:
    """Drives runs, `places` of them at once. A run that waits for a person on an open session takes no place."""

    def __init__(self, gate: Gate, places: int) -> None:
        # At most 80 characters, which a lease keeps; the last part alone makes it unique.
        self.owner = f"{os.uname().nodename[:60]}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self.gate, self.places = gate, places
        self.legs = asyncio.Semaphore(places)
        self.active: dict[int, Driven] = {}
        self.stopping = asyncio.Event()
        self.left: set[int] = set()
        """Runs that were given back unfinished because this worker stops."""
        self.all_given_back = True
        """Whether all of them were; one that was not is free once its lease has run out."""
        self._waking: set[asyncio.Future[None]] = set()

    @property
    def free(self) -> int:
        """Places that no run takes now."""
        return self.places - sum(not driven.rests.is_set() for driven in self.active.values())

    def kick(self, run_id: int) -> Driven:
        """Start driving a run, or tell the task that drives it to look again. A driver that stops starts nothing."""
        driven = self.active.get(run_id)
        if driven is not None:
            driven.signal.set()
            return driven
        driven = Driven()
        if self.stopping.is_set():
            self.left.add(run_id)
            driven.rests.set()
            return driven
        self.active[run_id] = driven
        driven.task = asyncio.ensure_future(self._drive(run_id, driven))
        driven.task.add_done_callback(lambda _: self._done(run_id, driven))
        return driven

    def tell(self, run_id: int) -> None:
        """A worker was woken for a run that is not its own to drive. If it is driven here it looks again."""
        if run_id in self.active:
            self.kick(run_id)
        else:
            self._aside(self._take_pinned(run_id))

    async def _take_pinned(self, run_id: int) -> None:
        """A run that only this host can go on with, and that nobody drives, is for us after all."""
        with contextlib.suppress(DatabaseError):  # the sweep finds it
            if await db.read(_waits_here, run_id):
                self.kick(run_id)

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._waking.add(task)
        task.add_done_callback(self._waking.discard)

    async def stop(self, within: float = 0.0) -> None:
        """Let calls that are at work come to their end `within` so many seconds, then give back every run."""
        self.stopping.set()
        for driven in self.active.values():
            driven.signal.set()
        if within > 0 and self.active:
            await asyncio.wait(self._tasks(), timeout=within)
        self.left.update(self.active)
        for task in self._tasks():
            task.cancel()
        await asyncio.gather(*self._tasks(), *self._waking, return_exceptions=True)

    def _tasks(self) -> list[asyncio.Future[None]]:
        return [driven.task for driven in self.active.values() if driven.task is not None]

    def _done(self, run_id: int, driven: Driven) -> None:
        self.active.pop(run_id, None)
        driven.rests.set()
        if self.stopping.is_set():
            self.left.add(run_id)
        elif driven.signal.is_set() and asyncio.get_running_loop().is_running():
            self.kick(run_id)  # a kick that came after the task had given the run back

    async def _drive(self, run_id: int, driven: Driven) -> None:
        database.stand_in(run_id)
        try:
            wake_at = await advance(
                run_id,
                owner=self.owner,
                gate=self.gate,
                signal=driven.signal,
                legs=self.legs,
                stopping=self.stopping,
                waits=driven.rests.set,
            )
        except SessionBusyError:
            # Its driver sees the wake when it gives the run back; one that waits on an open session has to be told.
            with contextlib.suppress(Exception):
                await db.write(notices.send, notices.WAKES, str(run_id))
            driven.signal.clear()
            return
        except Exception:
            # The lease runs out and the sweep tries again; a run that cannot be driven must not take others along.
            log.exception("run %s could not be driven", run_id)
            driven.signal.clear()
            if self.stopping.is_set():
                self.all_given_back = False
            return
        if wake_at is not None:
            delay = (wake_at - await db.read(clock.now)).total_seconds()
            asyncio.get_running_loop().call_later(max(delay, 0.0), self._end_sleep, run_id)

    def _end_sleep(self, run_id: int) -> None:
        """More punctual than the sweep, which finds the same sleeper if this process is gone by then."""
        if not self.stopping.is_set():
            self._aside(db.write(lease.wake, run_id))


def _waits_here(run_id: int) -> bool:
    return hosts.shared() and Run.objects.due(clock.now()).filter(pk=run_id, pin=hosts.here()).exists()
