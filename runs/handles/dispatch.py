"""Who drives the executions of a kit's store: this kit, or whoever holds the lock already (design section 3)."""

from __future__ import annotations

import asyncio
import contextlib

from django.conf import settings

from runs import binding, database, gate
from runs.engines import in_process, offers
from runs.engines.in_process import AlreadyRunningError, InProcess
from runs.engines.offers import Offers
from runs.mcp_client import StdioBinding


class Dispatcher:
    """Drives the store's runs while it holds the store's lock, and relies on the holder while it does not.

    On a program's own file it takes over as soon as the holder is gone. The installation's database is left to
    `manage.py up` once that has it: a kit must not keep it from starting again.
    """

    def __init__(self) -> None:
        self._engine = InProcess(gate.configured())
        self._drives = False
        self._locked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take the lock if it is free. Must run on the loop that the work is to happen on."""
        if self._lock():
            self._task = asyncio.create_task(self._engine.serve(), name="m3-dispatcher")
        elif database.current().path is not None:
            self._task = asyncio.create_task(self._take_over(), name="m3-dispatcher")

    async def stop(self) -> None:
        """Stop what is under way, leave every run for whoever comes next, and free the lock."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._task
        self._engine.unlock()

    def check(self) -> None:
        """Raise what ended the work, if something did: waiting on would be for nothing."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    def offers(self) -> Offers:
        """What the process that drives the runs can start."""
        if database.current().path is not None:
            self._lock()  # a holder that is gone offers nothing, whatever the file still says
        if self._drives and in_process.lock_file() is not None:
            return offers.here()
        if in_process.lock_file() is not None:
            return in_process.offered()
        # Several workers may share this database. Only the host's list is the same for all of them.
        mine = offers.here()
        own = database.current().bindings
        listed = {name: identity for name, identity in mine.entries.items() if name not in own}
        return Offers(entries=listed, local_tools=mine.local_tools)

    @property
    def may_offer(self) -> bool:
        """Whether a server that is offered from here will be there when a call needs it."""
        return self._drives and in_process.lock_file() is not None

    def offer(self, name: str, server: StdioBinding, *, entry: str | None = None) -> str:
        """Add a stdio entry to what this process knows, and tell others if it is the one that drives."""
        added = binding.offer(name, server, entry=entry)
        self._engine.announce()
        return added

    def _lock(self) -> bool:
        """Whether this kit drives, from now on if nobody else does."""
        if not self._drives:
            with contextlib.suppress(AlreadyRunningError):
                self._engine.lock()
                self._drives = True
                self._locked.set()
        return self._drives

    async def _take_over(self) -> None:
        while not self._lock():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._locked.wait(), settings.M3.sweep_seconds)
        await self._engine.serve()
