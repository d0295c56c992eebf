"""A server that means ill, or cannot do better, with its tasks: bounded, told to stop, and never trusted with more."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from runs import db
from runs.models import Round
from tests.worker.conftest import Desk, results
from tests.worker.following import NAME, TasksServer, call_of, told


async def test_a_task_that_asks_for_ever_meets_the_limit_of_rounds_and_is_told_to_stop(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("endless")
    for number in range(10):
        (round_,) = await desk_.pending(run)
        await desk_.answer(round_, {f"q{number}": NAME})
    assert (await desk_.finished(run)).error_code == "elicitation_round_limit"
    await desk_.eventually(lambda: tasks.done("cancel"), "the server to be told", run)
    assert await db.read(Round.objects.filter(run=run).count) == 10


async def test_a_wish_not_to_be_asked_for_years_and_a_book_for_a_status_are_cut(
    desk_: Desk, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("sleepy")
    await desk_.eventually(lambda: told(run).startswith("zz"), "the first look", run)
    call = await db.read(call_of, run)
    look_at = dt.datetime.fromisoformat(call.wire["task"]["look_at"])
    assert look_at <= timezone.now() + dt.timedelta(seconds=60)
    assert len(told_text(call.wire)) == 500


@pytest.mark.parametrize(("tool", "words"), [("impostor", "another"), ("babbles", "meditating")])
async def test_an_answer_that_is_not_about_the_task_proves_nothing_and_is_left_to_a_person(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any], tool: str, words: str
) -> None:
    run = await at_tasks(tool)
    (asked,) = await desk_.pending(run, "outcome")
    assert words in asked.context["reason"]
    assert len(tasks.done("cancel")) == 1
    assert (await db.read(call_of, run)).raw_result is None


async def test_a_request_that_is_not_offered_here_fails_the_call_and_stops_the_task(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("asks_for_a_model")
    await desk_.finished(run)
    result = (await db.read(results, run))["steps.0"]
    assert result["status"] == "failed"
    assert "sampling/createMessage" in result["error"]
    assert len(tasks.done("cancel")) == 1


async def test_an_answer_that_the_server_finds_unfit_is_not_sent_twice(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("refuses_answers")
    (round_,) = await desk_.pending(run)
    await desk_.answer(round_, {"name": NAME})
    await desk_.finished(run)
    error = (await db.read(results, run))["steps.0"]["error"]
    assert error == "The server did not take the answer: that is no name"
    assert (len(tasks.done("update")), len(tasks.done("cancel"))) == (1, 1)


async def test_a_task_that_does_not_end_in_its_time_is_stopped_and_its_outcome_asked(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any], settings: LazySettings
) -> None:
    settings.M3 = dataclasses.replace(settings.M3, task_timeout_seconds=0.5)
    run = await at_tasks("never_ends")
    (asked,) = await desk_.pending(run, "outcome")
    assert "has worked on this for 0.5 seconds" in asked.context["reason"]
    assert len(tasks.done("cancel")) == 1
    assert len(tasks.done("begun")) == 1


def told_text(wire: dict[str, Any]) -> str:
    return str(wire["progress"]["message"])
