"""The ledger of an account comes last: whoever ends a run waits for no other run while holding the ledger.

Otherwise somebody who holds that other run, and then wants the ledger, waits for it too, and one of them has to lose.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from runs import audit, control, turns
from runs.control import Submission
from runs.models import Account, Agent, Round, Run, Step
from runs.run_states import HumanInput, TurnStatus
from runs.worker import passes
from runs.worker.deadlines import sweep

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite writers take turns"),
]
MakeRun = Callable[..., Run]
PATIENCE = 30
"""Seconds after which a wait counts as stuck."""
WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


@contextmanager
def somebody_holds(run: Run, account: Account) -> Iterator[Future[None]]:
    """Somebody has locked the run's row, and writes in the ledger as soon as the other one waits for the row."""
    held = threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Run.objects.select_for_update().get(pk=run.pk)
                held.set()
                _until_somebody_waits()
                audit.note(account, None, "test.noted", "by the holder")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as other:
        holding = other.submit(hold)
        assert held.wait(PATIENCE)
        yield holding


def _until_somebody_waits() -> None:
    until = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute(WAITING)
            if cursor.fetchone() != (0,):
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits for the run")


@pytest.fixture(autouse=True)
def ledger(account: Account) -> None:
    """There is one already; its first line needs more locks than the others."""
    with transaction.atomic():
        audit.note(account, None, "test.first", "account")


def test_a_child_that_ends_takes_its_parent_before_the_ledger(make_run: MakeRun, account: Account) -> None:
    parent = make_run()
    turn = parent.turns.get()
    turns.set_status(parent, turn, TurnStatus.RUNNING_TURN)
    step = Step.objects.create(run=parent, turn=turn, seq=1, kind="run", path="steps.1", params={})
    leaf = Agent.objects.create(
        account=account, name="leaf", default_mode="approval", definition={"steps": [{"finish": "done"}]}
    )
    child = control.create_run(
        leaf, Submission(message="Help.", human_input=HumanInput.MANAGED), parent_step=step
    )
    with somebody_holds(parent, account) as holding:
        with transaction.atomic():
            passes.begin(child.pk, "a worker")
        holding.result(PATIENCE)
    child.refresh_from_db()
    assert (child.outcome, Run.objects.get(pk=parent.pk).wake_seq) == ("completed", parent.wake_seq + 1)


def test_a_sweep_that_ends_several_runs_holds_the_ledger_while_it_waits_for_none(
    make_run: MakeRun, make_round: Callable[..., Round], account: Account
) -> None:
    older, younger = make_round(run=make_run()), make_round(run=make_run())
    Round.objects.update(deadline=timezone.now() - dt.timedelta(seconds=5))
    with somebody_holds(older.run, account) as holding:
        sweep()
        holding.result(PATIENCE)
    ended = Run.objects.filter(pk__in=[older.run_id, younger.run_id]).values_list("outcome", flat=True)
    assert list(ended) == ["timed_out", "timed_out"]
