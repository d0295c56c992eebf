"""What a worker holds is not thrown away because the database is away for less than a lease.

A call that is under way goes on, and what its server returned is stored once the database is back, as long as nobody
else can have taken the run meanwhile. Otherwise a call that has finished would become one of which nobody knows whether
it took effect, and a person would be asked about it (A23).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Concatenate, Final, ParamSpec, TypeVar

from runs import clock, db, lease, races
from runs.lease import Lease
from runs.races import AWAY
from runs.worker import call_journal
from runs.worker.moves import Move, next_move

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)

PAUSE: Final = 0.7
"""Seconds between two looks whether the database is back."""


class Grip:
    """Until when a run that is driven here can be nobody else's, by what this process itself knows."""

    def __init__(self, held: Lease, stopping: asyncio.Event) -> None:
        self.held, self.stopping = held, stopping
        self._until = 0.0
        self.renewed_at(time.monotonic())

    def renewed_at(self, begun: float) -> None:
        """The lease was renewed by a statement that was sent no earlier than `begun`, by the monotonic clock."""
        self._until = max(self._until, begun + lease.ttl().total_seconds())

    async def renewing(self, boundary: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`db.write` of a boundary that renews the lease."""
        begun = time.monotonic()
        done = await db.write(boundary, *args, **kwargs)
        self.renewed_at(begun)
        return done

    async def read(self, query: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`db.read`, tried again while the database is away. Raises as `outlast` does."""
        while True:
            try:
                return await db.read(query, *args, **kwargs)
            except AWAY as error:
                await self.outlast(error, "a question about it")

    async def store(
        self,
        boundary: Callable[Concatenate[Lease, int, P], None],
        step_id: int,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """`db.write` of what came of a call that was sent, tried again while the database is away.

        Raises LeaseLost at once, and otherwise as `outlast` does.
        """
        whole = attempt = partial(boundary, self.held, step_id, *args, **kwargs)
        while True:
            try:
                await db.write(attempt)
            except AWAY as error:
                await self.outlast(error, "what a server returned")
                attempt = partial(_unless_stored, whole, self.held, step_id)
            else:
                return

    async def outlast(self, error: Exception, what: str) -> None:
        """Wait until the database is back, for the sake of `what`. Raises `error` if that is not what it says, once the
        lease may have run out, and as soon as the worker is told to stop."""
        if not races.away(error):
            raise error
        log.warning("the database is away; %s is kept in hand for run %s", what, self.held.run_id)
        while not self.stopping.is_set() and time.monotonic() + PAUSE < self._until:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAUSE):
                    await self.stopping.wait()
            if await self._is_back():
                return
        raise error

    async def _is_back(self) -> bool:
        """Whether the database answers, if it does so while there is time.

        It is asked by a reader, of whom others do not stand in line, and who forgets the question when nobody wants to
        know any more: whatever has to be written when a worker stops waits for none of these.
        """
        asked = asyncio.ensure_future(db.read(clock.now))
        stops = asyncio.ensure_future(self.stopping.wait())
        try:
            left = self._until - time.monotonic()
            await asyncio.wait({asked, stops}, timeout=max(left, 0.0), return_when=asyncio.FIRST_COMPLETED)
            return not stops.done() and asked.done() and asked.exception() is None
        finally:
            asked.cancel()
            stops.cancel()
            await asyncio.gather(asked, stops, return_exceptions=True)


def _unless_stored(whole: Callable[[], None], held: Lease, step_id: int) -> None:
    """The boundary `whole`, unless a commit came through of which nobody was told: then the call's rows permit another
    move than to ask what became of it, and they are what counts.

    The fence comes first: it waits for a transaction that is still at work on the connection which has broken here.
    """
    lease.fence(held)
    step, rounds = call_journal.rows(step_id)
    if step.result is None and next_move(step.call, rounds)[0] is Move.RECOVER:
        whole()
