"""A deadline that stands still while a person thinks, and a way to run work under it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlinePassedError(Exception):
    """The clock ran out before the work was done; the work has been cancelled and has ended."""


class HumanClock:
    """Counts down `seconds` of everybody's time but the human's (Issue A item 4)."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._left = seconds
        self._since = asyncio.get_running_loop().time()
        self._pauses = 0
        self._stopped = False
        self._changed = asyncio.Event()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stand still inside; pauses may overlap."""
        now = asyncio.get_running_loop().time()
        if self._pauses == 0:
            self._left -= now - self._since
        self._pauses += 1
        self._changed.set()
        try:
            yield
        finally:
            self._pauses -= 1
            self._since = asyncio.get_running_loop().time()
            self._changed.set()

    def stop(self) -> None:
        """Do not expire: what was waited for is here, and keeping it must not be cut short."""
        self._stopped = True
        self._changed.set()

    def restart(self) -> None:
        """Count down from the beginning."""
        self._stopped = False
        self._left = self.seconds
        self._since = asyncio.get_running_loop().time()
        self._changed.set()

    async def expired(self) -> None:
        """Return once the time is used up."""
        while True:
            self._changed.clear()
            if self._pauses or self._stopped:
                await self._changed.wait()
                continue
            left = self._left - (asyncio.get_running_loop().time() - self._since)
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self._changed.wait(), left)
            except TimeoutError:
                continue


async def run_until(
    work: Coroutine[Any, Any, T], clock: HumanClock, before_cancel: Callable[[], None] | None = None
) -> T:
    """Run `work` in a task of its own until it is done or the clock has run out. `before_cancel` is called first
    when the caller is cancelled.

    Its own task, because a dying transport cancels the code that uses it (python-sdk #3560): inside the same
    task that could not be told from the caller's cancellation. Both the deadline and the caller's
    cancellation cancel the work and wait for it to close what it opened.

    Raises DeadlinePassedError, or whatever `work` raises.
    """
    task = asyncio.create_task(work)
    expiry = asyncio.create_task(clock.expired())
    try:
        await asyncio.wait({task, expiry}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await _end(task)
            if task.cancelled():
                raise DeadlinePassedError
        return await task
    except asyncio.CancelledError:
        if before_cancel is not None:
            before_cancel()
        await _end(task)
        raise
    finally:
        expiry.cancel()


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for its end; what it raises is left in it."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it as lost
