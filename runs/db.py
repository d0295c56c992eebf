"""The one way from async code to the database: one boundary, one sync function, one transaction.

Writes that belong together, such as those of one run, go through one FIFO thread, in the order in which they were asked
for (`runs.database.stand_in`). On SQLite there is one for all, and it is one of those that take turns
(`runs.sqlite_turns`). Reads get threads of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, InterfaceError, connection, transaction

from runs import database, races

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

TRIES = 4
"""How often a boundary is begun that others get in the way of. Somebody gets through each time, so few are enough."""


async def write(boundary: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `boundary` in a writer thread inside one transaction; on-commit hooks run before this returns.

    A caller that is cancelled meanwhile does not undo the boundary: it commits or fails as a whole. One that lost a
    race on PostgreSQL (`runs.races`), or its connection before the commit, is begun anew, so a boundary reads what it
    changes inside, and leaves alone what it was given.
    """
    return await asyncio.shield(
        _submit(database.current().writer, partial(_in_transaction, partial(boundary, *args, **kwargs)))
    )


async def steps(job: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `job` in a writer thread; it makes its own transactions, short ones, and may be begun anew as `read` is."""
    return await _submit(
        database.current().writer, partial(_outside_transaction, partial(job, *args, **kwargs))
    )


async def read(query: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a read-only `query` outside any transaction."""
    return await _submit(
        database.current().readers, partial(_outside_transaction, partial(query, *args, **kwargs))
    )


def _submit(pool: ThreadPoolExecutor, job: Callable[[], T]) -> asyncio.Future[T]:
    running = asyncio.get_running_loop().run_in_executor(pool, copy_context().run, job)
    # Whoever waits may have been cancelled meanwhile; then the outcome is of interest to nobody.
    running.add_done_callback(lambda done: done.cancelled() or done.exception())
    return running


def _in_transaction(job: Callable[[], T]) -> T:
    stored = False

    def whole() -> T:
        nonlocal stored
        with transaction.atomic():
            result = job()
            stored = True  # from here on a connection that breaks leaves open whether the commit came through
        return result

    for _ in range(TRIES - 1):
        _keep_connection()
        try:
            return whole()
        except (DatabaseError, InterfaceError) as error:
            if not races.lost(error) and (stored or not races.away(error)):
                raise
            log.info("a boundary is begun anew: %s", str(error).strip())
    _keep_connection()
    return whole()


def _outside_transaction(job: Callable[[], T]) -> T:
    _keep_connection()
    try:
        return job()
    except (DatabaseError, InterfaceError) as error:
        if not races.away(error):
            raise
        log.info("asked anew: %s", str(error).strip())
    _keep_connection()
    return job()


def _keep_connection() -> None:
    """One lasting connection per thread of ours, replaced when it broke. Raises OperationalError if none can be had.

    That it broke shows when it is used: whoever used it begins anew on another. Django's own rule closes it after every
    request, which would make a small boundary four times as dear.
    """
    connection.close_if_unusable_or_obsolete()
    connection.ensure_connection()
    connection.close_at = None


def close_threads() -> None:
    """Close the connections of the current database's threads (test teardown, end of the process)."""
    database.current().close_connections()
