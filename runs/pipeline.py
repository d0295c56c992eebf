"""psycopg's pipeline, except that nothing of it leaves before all of it does, and nothing comes after its end."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection, Pipeline


class Whole(Pipeline):
    """Statements that leave together: the BEGIN before them, if they are the first of a transaction, and the Sync that
    ends them.

    PostgreSQL ends a transaction in which nothing happens (`idle_in_transaction_session_timeout`), but only from a Sync
    on, and until any other message comes. psycopg's own pipeline sends each statement as soon as it is made, and a
    Flush after the Sync. If the process is frozen then (a paused container, a debugger), the server holds what the
    transaction has locked for as long.
    """

    def _sync_gen(self) -> Generator[Any, Any, None]:
        """Called after a BEGIN, whose answer psycopg would wait for."""
        self._make()
        yield from ()

    def _communicate_gen(self) -> Generator[Any, Any, None]:
        """Called after every statement."""
        yield from ()

    def _exit_gen(self) -> Generator[Any, Any, None]:
        """Called at the end."""
        self._enqueue_sync()
        self._make()
        try:
            yield from super()._communicate_gen()
        finally:
            yield from self._fetch_gen(flush=False)

    def _make(self) -> None:
        """Make messages of what waits; libpq keeps them until the Sync, which sends them."""
        try:
            while self.command_queue:
                self.command_queue.popleft()()
        except BaseException:
            self.pgconn.finish()  # what is made already must not leave without an end
            raise


@contextmanager
def whole(connection: Connection[Any]) -> Iterator[None]:
    """Carry out the statements of this block at its end; their results are there then. No more of them than libpq sends
    at once (`runs.statements.fitting`)."""
    connection._pipeline = Whole(connection)
    try:
        with connection._pipeline:
            yield
    except BaseException:
        connection._prepared.clear()  # what came after the one that failed was not prepared, whatever psycopg believes
        raise
    finally:
        connection._pipeline = None
