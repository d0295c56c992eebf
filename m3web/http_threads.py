"""The threads in which pages and the API are worked on: they stay, and with them what a thread keeps.

Django's own handler makes two threads for every request and ends them with it, and with them a connection to the
database. On SQLite that was most of the price of reading a run.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, ParamSpec, TypeVar

from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")
Thread = ThreadPoolExecutor
"""One with a single thread, so that what it is given is done in order."""

LASTING: Final = 16
"""Requests that are worked on at once as a rule, and threads that are kept. More than one interpreter can drive; some
wait for the database."""

MOST: Final = 128
"""Threads there are at most, however many requests wait for something outside."""

PATIENCE: Final = 0.5
"""Seconds that a request waits for one of the lasting threads before it gets another. Not at once: a burst is over
sooner in turns."""


@dataclass(frozen=True)
class _Waiting:
    until: float
    """The loop's time from which it need not wait any more."""
    thread: asyncio.Future[Thread]


class Threads:
    """Threads for requests, made on demand. To be used on the event loop that serves, and nowhere else."""

    def __init__(self, *, lasting: int = LASTING, most: int = MOST, patience: float = PATIENCE) -> None:
        self._lasting, self._most, self._patience = lasting, most, patience
        self._idle: list[Thread] = []
        self._waiting: deque[_Waiting] = deque()
        self._relief: asyncio.TimerHandle | None = None
        self.made = 0
        """How many there are now, at work or idle."""

    async def take(self) -> Thread:
        """A thread for the caller alone, who gives it back by `put`; whoever waits longest is next."""
        if self._idle:
            return self._idle.pop()  # the one that was used last: rarely used ones need not wake at all
        if self.made < self._lasting:
            return self._new()
        loop = asyncio.get_running_loop()
        waiting = _Waiting(loop.time() + self._patience, loop.create_future())
        self._waiting.append(waiting)
        self._watch(loop)
        try:
            return await waiting.thread
        except asyncio.CancelledError:
            if waiting.thread.done() and not waiting.thread.cancelled():
                self.put(waiting.thread.result())
            raise

    def put(self, thread: Thread) -> None:
        """Give an idle thread back."""
        if waiting := self._next():
            waiting.thread.set_result(thread)
        elif len(self._idle) < self._lasting:
            self._idle.append(thread)
        else:
            self.made -= 1
            thread.submit(connections.close_all)
            thread.shutdown(wait=False)

    def put_when_idle(self, thread: Thread) -> None:
        """Give a thread back that may still be at work for a request which nobody waits for any more."""
        loop = asyncio.get_running_loop()
        resting = loop.run_in_executor(thread, close_old_connections)
        resting.add_done_callback(lambda _: self.put(thread))

    def _new(self) -> Thread:
        self.made += 1
        return ThreadPoolExecutor(1, thread_name_prefix="m3-http")

    def _next(self) -> _Waiting | None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.thread.done():  # else its request was given up
                return waiting
        return None

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._relief is None and self.made < self._most:
            self._relief = loop.call_at(self._waiting[0].until, self._relieve, loop)

    def _relieve(self, loop: asyncio.AbstractEventLoop) -> None:
        """One thread more if whoever waits longest has waited enough: all others may be stuck for long."""
        self._relief = None
        while self._waiting and self._waiting[0].thread.done():
            self._waiting.popleft()
        if self._waiting and self._waiting[0].until <= loop.time():
            self._waiting.popleft().thread.set_result(self._new())
        if self._waiting:
            self._relief = loop.call_at(
                max(self._waiting[0].until, loop.time() + self._patience / 4), self._relieve, loop
            )


class Lane(Executor):
    """What one request runs its synchronous code on: always one thread, but not always one at all."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._thread: Thread | None = None

    async def enter(self) -> None:
        """Get a thread, after a while if all are busy."""
        self._thread = await self._threads.take()

    async def enter_again(self) -> None:
        """The same after `leave`, also for a request that is being cancelled: telling of its end needs a thread too."""
        entering = asyncio.ensure_future(self.enter())
        try:
            await asyncio.shield(entering)
        except asyncio.CancelledError:
            await entering
            raise

    async def leave(self) -> None:
        """Give the thread and its connection to the database back, while nothing runs there."""
        await asyncio.get_running_loop().run_in_executor(self, close_old_connections)
        self.end()

    def end(self, *, idle: bool = True) -> None:
        """Give the thread back for good; without having left, also if it is not `idle`."""
        thread, self._thread = self._thread, None
        if thread is not None:
            (self._threads.put if idle else self._threads.put_when_idle)(thread)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._thread is None:
            raise RuntimeError("this request has no thread now")
        return self._thread.submit(fn, *args, **kwargs)
