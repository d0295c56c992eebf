"""Somebody else at work at the same moment, on a connection of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.db import connection, connections, transaction

from runs.models import Run

PATIENCE = 30
"""Seconds after which a wait counts as stuck."""
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@contextmanager
def somebody_else(deed: Callable[[], Any]) -> Iterator[None]:
    """Does `deed` in another thread meanwhile, and passes on what it raised."""

    def alone() -> None:
        try:
            deed()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(alone)
        yield
        done.result(PATIENCE)


@contextmanager
def somebody_does(first: Callable[[], Any], then: Callable[[], Any] = lambda: None) -> Iterator[None]:
    """Somebody has done `first`, and does `then`, in the same transaction, as soon as the other one waits for them."""
    begun = threading.Event()

    def both() -> None:
        try:
            with transaction.atomic():
                first()
                begun.set()
                _until_somebody_waits()
                then()
        finally:
            begun.set()

    with somebody_else(both):
        assert begun.wait(PATIENCE)
        yield


def somebody_holds(run: Run, then: Callable[[], Any] = lambda: None) -> AbstractContextManager[None]:
    """Somebody has locked the run's row."""
    return somebody_does(lambda: Run.objects.select_for_update().get(pk=run.pk), then)


def elsewhere(deed: Callable[[], Any]) -> None:
    """Do it on another connection, to the end."""
    with somebody_else(deed):
        pass


def _until_somebody_waits() -> None:
    until = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(WAITING)
            if cursor.fetchone() != (0,):
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits for the run")
