"""A question with a recommendation goes on by itself, also if its time was up while no worker was there."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

from django.conf import LazySettings

from runs import clock, db
from runs.models import Round
from tests.worker.conftest import Desk, replaced

QUESTION = {
    "question": "Colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "red"}, {"label": "blue (Recommended)"}],
}
STEPS = [{"ask": {"questions": [QUESTION]}, "as": "a"}, {"finish": '{{ a.answers."Colour?" }}'}]


async def test_when_time_is_up_the_run_goes_on_with_the_recommended_option(
    desk_: Desk, settings: LazySettings
) -> None:
    settings.M3 = dataclasses.replace(settings.M3, question_seconds=0.5)
    run = await desk_.start(STEPS, server="")

    assert (await desk_.finished(run)).output == "blue (Recommended)"
    round_ = await db.read(Round.objects.get, run=run)
    assert (round_.status, round_.outcome, round_.decided_via) == ("resolved", "answered", "recommended")


async def test_a_time_that_passed_while_nobody_worked_counts_after_the_restart(
    desk_: Desk, desk_of: Callable[..., Any], stop: Callable[[], Any]
) -> None:
    run = await desk_.start(STEPS, server="")
    (round_,) = await desk_.pending(run, "question")
    await stop()

    def passed() -> None:
        Round.objects.filter(pk=round_.pk).update(continue_at=clock.now() - dt.timedelta(minutes=1))

    await db.write(passed)
    second = await replaced(desk_of, desk_, stop)

    assert (await second.finished(run)).output == "blue (Recommended)"
