"""The one way from async code to the database: one boundary, one sync function, one transaction.

All engine writes of a process go through a single FIFO thread. On SQLite neither the busy handler nor a lock
is fair (a second writer starves for seconds); a queue is, at equal throughput. Reads get threads of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import connection, connections, transaction

P = ParamSpec("P")
T = TypeVar("T")

_writer = ThreadPoolExecutor(1, thread_name_prefix="m3-writer")
_readers = ThreadPoolExecutor(4, thread_name_prefix="m3-reader")


async def write(boundary: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `boundary` in the writer thread inside one transaction; on-commit hooks run before this returns.

    A caller that is cancelled meanwhile does not undo the boundary: it commits or fails as a whole.
    """
    return await asyncio.shield(
        _submit(_writer, partial(_in_transaction, partial(boundary, *args, **kwargs)))
    )


async def read(query: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a read-only `query` outside any transaction."""
    return await _submit(_readers, partial(_outside_transaction, partial(query, *args, **kwargs)))


def _submit(pool: ThreadPoolExecutor, job: Callable[[], T]) -> asyncio.Future[T]:
    running = asyncio.get_running_loop().run_in_executor(pool, job)
    # Whoever waits may have been cancelled meanwhile; then the outcome is of interest to nobody.
    running.add_done_callback(lambda done: done.cancelled() or done.exception())
    return running


def _in_transaction(job: Callable[[], T]) -> T:
    _keep_connection()
    with transaction.atomic():
        return job()


def _outside_transaction(job: Callable[[], T]) -> T:
    _keep_connection()
    return job()


def _keep_connection() -> None:
    """One lasting connection per thread of ours, replaced when it broke.

    Django's own rule closes it after every request, which would make a small boundary four times as dear.
    """
    connection.close_if_unusable_or_obsolete()
    connection.ensure_connection()
    connection.close_at = None


def close_threads() -> None:
    """Close the connections of the writer and reader threads (test teardown, end of the process)."""
    _writer.submit(connections.close_all).result()
    for waiting in [_readers.submit(connections.close_all) for _ in range(8)]:
        waiting.result()
