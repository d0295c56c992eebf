"""A worker leaves a turn alone while a program that opened a round on it has not done with it (C39)."""

from __future__ import annotations

from django.db.models import F

from runs import db
from runs.control import Submission, create_run
from runs.managed_input import DjangoManagedInputStore
from runs.models import Run, Turn
from runs.run_states import HumanInput
from tests.services.managed_input.samples import HOLDER, STEPS, opened, submitted
from tests.worker.conftest import Desk


async def test_a_turn_goes_on_once_the_program_is_done(desk_: Desk) -> None:
    store = DjangoManagedInputStore()

    def start() -> tuple[Run, str]:
        """Run and round in one transaction, before any worker hears of either."""
        agent = desk_.agent("agent", [{"finish": "Done."}], "")
        run = create_run(agent, Submission(message="go", mode="autonomous", human_input=HumanInput.MANAGED))
        execution = str(Turn.objects.get(run=run).pk)
        opened(store, execution)
        return run, execution

    run, execution = await db.write(start)

    def parked() -> Run | None:
        return Run.objects.filter(pk=run.pk, lease_owner=None, seen_seq=F("wake_seq")).first()

    assert (await desk_.eventually(parked, "the worker to park the run", run)).status == "waiting_for_input"
    await db.write(submitted, store, execution)
    assert (await desk_.eventually(parked, "the worker to park the run", run)).status == "running_turn"

    for step in STEPS:
        await db.write(getattr(store, step), execution, "round-1", **HOLDER)
    assert (await desk_.finished(run)).output == "Done."
