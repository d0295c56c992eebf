"""A worker that stands still, as in a paused container, keeps no run from the others once its lease has run out.

What it has locked is free then, wherever it stopped: PostgreSQL ends a transaction in which nothing happens.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from runs import clock, lease, prepared, statements
from runs.errors import SessionBusyError
from runs.models import Account, Run
from runs.statements import Given, Statement, fitting
from runs.worker import passes

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="a file's lock is that of a process"),
]
MakeRun = Callable[..., Run]
PATIENCE = 30
"""Seconds after which a wait counts as stuck."""
LEASE_MS = 200


Freezes = Callable[[Callable[[], None], str, int], AbstractContextManager[threading.Event]]


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> Freezes:
    """Have a thread do something, and stand still where it has called one of two things for so many times: `execute`,
    which makes a statement ready or carries it out, or `batch`, which carries out what leaves together."""

    @contextmanager
    def frozen(act: Callable[[], None], where: str, after: int) -> Iterator[threading.Event]:
        stands, thaws, left = threading.Event(), threading.Event(), [after]

        def then_stand_still(call: Callable[..., Any]) -> Callable[..., Any]:
            def calling(*given: Any) -> Any:
                done = call(*given)
                if threading.current_thread() is acting:
                    left[0] -= 1
                    if not left[0]:
                        stands.set()
                        thaws.wait(PATIENCE)
                return done

            return calling

        binding = statements._binding

        def stopping(at: Any) -> Any:
            cursor = binding(at)
            cursor.execute = then_stand_still(cursor.execute)
            return cursor

        def acts() -> None:
            try:
                with connection.cursor() as cursor:
                    cursor.execute(f"SET idle_in_transaction_session_timeout = {LEASE_MS}")
                with suppress(
                    DatabaseError, SessionBusyError
                ):  # its transaction was ended, or another has the run
                    act()
            finally:
                if connection.connection is not None:
                    connection.connection.close()  # with its setting: nobody is to get it from the pool
                connections.close_all()

        acting = threading.Thread(target=acts)
        with monkeypatch.context() as patched:
            if where == "execute":
                patched.setattr(statements, "_binding", stopping)
            else:
                patched.setattr(statements, "_at_once", then_stand_still(statements._at_once))
            acting.start()
            try:
                yield stands
            finally:
                thaws.set()
                acting.join(PATIENCE)

    return frozen


@transaction.atomic
def another_claims(run: Run) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{PATIENCE // 3}s'")
    return lease.claim(run.pk, "another") is not None


@pytest.mark.parametrize(
    ("where", "after"), [*(("execute", n) for n in range(1, 8)), *(("batch", n) for n in (1, 2))]
)
def test_others_get_the_run_wherever_the_worker_that_claims_it_stands_still(
    make_run: MakeRun, freezes: Freezes, where: str, after: int
) -> None:
    run = make_run()

    @transaction.atomic
    def begin() -> None:
        passes.begin(run.pk, "frozen")

    with freezes(begin, where, after) as stands:
        assert stands.wait(PATIENCE)
        assert another_claims(run)


@pytest.mark.parametrize("again", range(5))
def test_a_row_is_free_after_a_batch_whether_the_answers_were_there_at_once_or_not(
    make_run: MakeRun, freezes: Freezes, again: int
) -> None:
    run = make_run()

    @transaction.atomic
    def claim() -> None:
        for _ in range(again):
            prepared.together(*clock.questions(), *clock.questions())
        prepared.together(lease.claiming(run.pk, "frozen"), *clock.questions())

    with freezes(claim, "batch", again + 1) as stands:
        assert stands.wait(PATIENCE)
        assert another_claims(run)


def test_what_would_not_be_sent_at_once_leaves_in_parts(account: Account) -> None:
    statement = Statement("SELECT %s", ())
    small, large, odd = (Given(statement, [value], rows=True) for value in ("x" * 100, "ä" * 3000, b"bytes"))
    assert list(fitting([small] * 3)) == [[small] * 3]
    assert list(fitting([small, large, small, small])) == [[small], [large], [small] * 2]
    assert list(fitting([odd, small])) == [[odd], [small]]
    assert [len(batch) for batch in fitting([small] * 100)] == [43, 43, 14]
    with transaction.atomic():
        results = statements.carry_out([small, large, small])
    assert [rows for rows, _ in results] == [[("x" * 100,)], [("ä" * 3000,)], [("x" * 100,)]]
