"""A wake that a worker of the wrong host hears of reaches the host of the session, without waiting for any sweep."""

from __future__ import annotations

import dataclasses

import pytest
from django.conf import LazySettings, settings

from runs import control, db
from runs.models import Run
from runs.round_rows import Decider
from tests.worker.fleet import Fleet, a_bound, a_fleet, an_old_server, on_a_server  # noqa: F401  (fixtures)

pytestmark = [
    on_a_server,
    pytest.mark.skipif(settings.M3.engine != "procrastinate", reason="wakes of one process stay in it"),
]


async def test_answers_and_cancellations_of_held_runs_arrive_whichever_host_hears_of_them(
    fleet: Fleet,
    settings: LazySettings,
) -> None:
    """Jobs go to any worker; with several of them, some go to the one that can do nothing with them."""
    settings.M3 = dataclasses.replace(settings.M3, lease_seconds=600.0, sweep_seconds=600.0)
    fleet.start("a")
    answered = [await fleet.asked() for _ in range(3)]
    cancelled = [(await fleet.asked())[0] for _ in range(3)]
    keepers = [await fleet.keeper_of(run) for run in cancelled]
    fleet.start("b")
    for run, round_ in answered:
        await fleet.desk.accept(round_, name=f"of {run.pk}")
    for run in cancelled:
        await db.write(control.cancel, run.pk, decider=Decider(user=fleet.desk.person, via="page"))
    for run, _ in answered:
        assert (await fleet.desk.finished(run)).output == "done"
    for keeper in keepers:
        await fleet.ended(keeper)
    assert (fleet.received("tools/call"), fleet.answers()) == (6, 3)
    assert fleet.received("notifications/cancelled") == 3
    await fleet.desk.eventually(lambda: not Run.objects.exclude(pin=None).exists(), "the pins to go")
