"""A worker that stands still, as in a paused container, keeps no run from the others once its lease has run out.

What it has locked is free then, wherever it stopped: PostgreSQL ends a transaction in which nothing happens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections, transaction

from runs import lease, statements
from runs.models import Run
from runs.worker import passes

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a file's lock is that of a process"),
]
MakeRun = Callable[..., Run]
PATIENCE = 30
"""Seconds after which a wait counts as stuck."""
LEASE_MS = 200


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Have a thread stand still right after it carried out, or sent, so many of the statements of `runs.prepared`."""
    binding = statements._binding

    @contextmanager
    def frozen(after: int) -> Iterator[threading.Event]:
        stands, thaws, left = threading.Event(), threading.Event(), [after]

        def stopping(at: Any) -> Any:
            cursor = binding(at)
            execute = cursor.execute

            def execute_and_stand_still(*given: Any) -> Any:
                done = execute(*given)
                left[0] -= 1
                if not left[0] and threading.current_thread() is not threading.main_thread():
                    stands.set()
                    thaws.wait(PATIENCE)
                return done

            cursor.execute = execute_and_stand_still
            return cursor

        with monkeypatch.context() as patched:
            patched.setattr(statements, "_binding", stopping)
            try:
                yield stands
            finally:
                thaws.set()

    return frozen


@pytest.mark.parametrize("after", [1, 2, 3])
def test_others_get_the_run_wherever_the_worker_that_claims_it_stands_still(
    make_run: MakeRun, freezes: Callable[[int], Any], after: int
) -> None:
    run = make_run()

    def begin() -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"SET idle_in_transaction_session_timeout = {LEASE_MS}")
            with transaction.atomic():
                passes.begin(run.pk, "frozen")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other, freezes(after) as stands:
        other.submit(begin)
        assert stands.wait(PATIENCE)
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{PATIENCE // 2}s'")
        assert lease.claim(run.pk, "another") is not None
