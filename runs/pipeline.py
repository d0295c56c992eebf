"""psycopg's pipeline, except that nothing of it leaves before all of it does."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection, Pipeline


class Whole(Pipeline):
    """Statements that leave together: the BEGIN before them, if they are the first of a transaction, and the Sync that
    ends them.

    psycopg's own sends each as soon as it is made. If the process is frozen then (a paused container, a debugger), the
    server has carried out the first ones, holds what they locked and waits for the Sync; and for as long as it does,
    PostgreSQL does not take the transaction for idle, so `idle_in_transaction_session_timeout` never ends it.
    """

    _all_there = False

    def _sync_gen(self) -> Generator[Any, Any, None]:
        """Called after a BEGIN, whose answer psycopg would wait for."""
        self._make()
        yield from ()

    def _enqueue_sync(self) -> None:
        """Called at the end."""
        super()._enqueue_sync()
        self._all_there = True

    def _communicate_gen(self) -> Generator[Any, Any, None]:
        """Called after every statement, and at the end."""
        if self._all_there:
            self._make()
            yield from super()._communicate_gen()

    def _make(self) -> None:
        """Make messages of what waits; libpq keeps them until the Sync, which sends them."""
        while self.command_queue:
            self.command_queue.popleft()()


@contextmanager
def whole(connection: Connection[Any]) -> Iterator[None]:
    """Carry out the statements of this block at its end; their results are there then."""
    connection._pipeline = Whole(connection)
    try:
        with connection._pipeline:
            yield
    finally:
        connection._pipeline = None
