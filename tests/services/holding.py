"""Somebody else at work on a run: holds its row until the test waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connection, connections, transaction

from runs.models import Run

PATIENCE = 30
"""Seconds after which a wait counts as stuck."""
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@contextmanager
def somebody_holds(run: Run, then: Callable[[], Any] = lambda: None) -> Iterator[Future[None]]:
    """Somebody has locked the run's row, and does `then` as soon as the other one waits for the row."""
    held = threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Run.objects.select_for_update().get(pk=run.pk)
                held.set()
                _until_somebody_waits()
                then()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other:
        holding = other.submit(hold)
        assert held.wait(PATIENCE)
        yield holding
        holding.result(PATIENCE)


def _until_somebody_waits() -> None:
    until = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(WAITING)
            if cursor.fetchone() != (0,):
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits for the run")
