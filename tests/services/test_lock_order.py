"""The ledger of an account comes last: whoever ends a run waits for no other run while holding the ledger.

Otherwise somebody who holds that other run, and then wants the ledger, waits for it too, and one of them has to lose.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.utils import timezone

from runs import audit, control, turns
from runs.control import Submission
from runs.models import Account, Agent, Round, Run, Step
from runs.run_states import HumanInput, TurnStatus
from runs.worker import passes
from runs.worker.deadlines import sweep
from tests.services.holding import somebody_holds

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="on SQLite writers take turns"),
]
MakeRun = Callable[..., Run]


@pytest.fixture(autouse=True)
def ledger(account: Account) -> None:
    """There is one already; its first line needs more locks than the others."""
    with transaction.atomic():
        audit.note(account, None, "test.first", "account")


def by_the_holder(account: Account) -> None:
    audit.note(account, None, "test.noted", "by the holder")


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
    with somebody_holds(parent, lambda: by_the_holder(account)), transaction.atomic():
        passes.begin(child.pk, "a worker")
    child.refresh_from_db()
    assert (child.outcome, Run.objects.get(pk=parent.pk).wake_seq) == ("completed", parent.wake_seq + 1)


def test_a_sweep_that_ends_several_runs_holds_the_ledger_while_it_waits_for_none(
    make_run: MakeRun, make_round: Callable[..., Round], account: Account
) -> None:
    older, younger = make_round(run=make_run()), make_round(run=make_run())
    Round.objects.update(deadline=timezone.now() - dt.timedelta(seconds=5))
    with somebody_holds(older.run, lambda: by_the_holder(account)):
        sweep()
    ended = Run.objects.filter(pk__in=[older.run_id, younger.run_id]).values_list("outcome", flat=True)
    assert list(ended) == ["timed_out", "timed_out"]
