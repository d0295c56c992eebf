"""One event loop in one thread that lives as long as its kit.

Everything that a kit does happens there: database work goes to the threads of its store, children of stdio servers are
spawned from it and die with it. The caller's thread only waits.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from runs import database
from runs.database import Database
from runs.errors import SessionClosedError

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for one database, on behalf of any thread or loop."""

    def __init__(self, database_: Database) -> None:
        self._database = database_
        self._loop = asyncio.new_event_loop()
        self._guard = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="m3-kit", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end and give its result; blocks. Raises SessionClosedError if the kit is or gets closed."""
        future = self._submit(work)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise _closed() from error
        except KeyboardInterrupt:
            future.cancel()
            raise

    async def acall(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for a caller with a loop of its own; cancelling the caller cancels `work`."""
        future = self._submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():
                raise
            raise _closed() from error

    def close(self) -> None:
        """Cancel what is left, stop the loop and wait for the thread. Again does nothing."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._guard:
            if self._closed:
                work.close()
                raise _closed()
            return asyncio.run_coroutine_threadsafe(self._inside(work), self._loop)

    async def _inside(self, work: Coroutine[Any, Any, T]) -> T:
        with database.using(self._database):
            return await work

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


def _closed() -> SessionClosedError:
    return SessionClosedError(
        "The kit is closed. Open another on the same store; the execution is still there."
    )
