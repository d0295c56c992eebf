"""A server answers a call with a task (SEP-2663): it is followed by its id, and what it asks are rounds as always."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from runs import db, timeline
from runs.models import Round, Run, Tool
from runs.run_states import HumanInput
from tests.worker.conftest import Desk, results
from tests.worker.following import NAME, TasksServer, call_of, told


async def test_a_task_without_questions_ends_in_the_calls_result(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("report")
    assert (await desk_.finished(run)).outcome == "completed"
    result = (await db.read(results, run))["steps.0"]
    assert result == {"status": "done", "result": '"the report"', "error": None}
    assert len(tasks.done("begun")) == 1


async def test_a_run_costs_a_row_while_its_task_works_and_its_page_says_how_far_it_is(
    desk_: Desk, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("never_ends")

    def parked() -> bool:
        heard = told(run) == "still at it"
        return heard and run.pk not in desk_.engine.active and Run.objects.get(pk=run.pk).next_at is not None

    await desk_.eventually(parked, "the run to wait without a worker", run)
    page = await db.read(timeline.page, run)
    (row,) = [row for row in page.rows if row.step == 1]
    assert row.body == "still at it"
    assert [note.text for note in row.notes] == [
        "The server took it on as a task and works on it by itself; it is asked from time to time."
    ]


async def test_forms_and_pages_of_a_task_are_rounds_and_each_answer_leaves_once(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run, "elicitation")
    assert {key: request["mode"] for key, request in first.requests.items()} == {
        "name": "form",
        "terms": "url",
    }
    assert not first.held
    await desk_.eventually(lambda: run.pk not in desk_.engine.active, "the run to be a row and no task", run)
    assert (await db.read(call_of, run)).wire["task"]["working_since"] is None, (
        "a person's time does not count"
    )
    looks = len(tasks.done("look"))
    await desk_.answer(first, {"name": NAME, "terms": {"action": "accept"}})
    (second,) = await desk_.pending(run, "elicitation")
    assert len(tasks.done("look")) == looks + 2, "nothing was asked of the server while a person was thinking"
    assert (second.round_index, list(second.requests)) == (1, ["seat:1"])
    await desk_.answer(second, {"seat:1": {"action": "decline"}})
    await desk_.finished(run)
    assert [update["keys"] for update in tasks.done("update")] == [["name", "terms"], ["seat:1"]]
    assert len(tasks.done("begun")) == 1
    assert await _fates(run) == [("resolved", "answered")] * 2


async def test_a_key_that_the_server_shows_for_a_moment_longer_is_no_new_question(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("slow_to_listen")
    (round_,) = await desk_.pending(run)
    await desk_.answer(round_, {"name": NAME})
    assert (await desk_.finished(run)).outcome == "completed"
    assert len(tasks.done("update")) == 1
    assert await db.read(Round.objects.filter(run=run).count) == 1


async def test_an_answer_that_the_server_went_on_without_is_not_sent(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("changes_its_mind")
    (round_,) = await desk_.pending(run)
    await desk_.eventually(lambda: _age(tasks) > 1.0, "the server to go on", run)
    await desk_.answer(round_, {"name": NAME})
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == '"went on without"'
    assert tasks.done("update") == []
    assert await _fates(run) == [("failed", "superseded")]


async def test_parallel_calls_go_on_while_a_task_works_and_another_asks(
    desk_: Desk, at_tasks: Callable[..., Any]
) -> None:
    calls = [
        {"call": "tasks:travel", "args": {}, "as": "a"},
        {"call": "tasks:report", "args": {"seconds": 1.0}, "as": "b"},
        {"call": "tasks:tool_error", "args": {}, "as": "c"},
    ]
    run = await at_tasks([{"parallel": calls}, {"finish": "{{ b.result }}"}])
    (first,) = await desk_.pending(run)

    def others_are_done() -> bool:
        return run.steps.filter(result__isnull=False).count() == 2

    await desk_.eventually(others_are_done, "the other two calls", run)
    await desk_.answer(first, {"name": NAME, "terms": {"action": "accept"}})
    (second,) = await desk_.pending(run)
    await desk_.answer(second, {"seat:1": NAME})
    assert (await desk_.finished(run)).output == '"the report"'
    found = await db.read(results, run)
    assert found["steps.0.parallel.2"]["error"] == '"wrong file"'


@pytest.mark.parametrize(
    ("tool", "error"),
    [
        ("fails", "The task failed: The printer is on fire"),
        ("gives_up", "The server cancelled its task: no paper"),
        ("tool_error", '"wrong file"'),
    ],
)
async def test_a_task_that_ends_badly_fails_the_call_with_the_servers_words(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any], tool: str, error: str
) -> None:
    run = await at_tasks(tool)
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"] == {"status": "failed", "result": None, "error": error}
    assert (len(tasks.done("begun")), tasks.done("cancel")) == (1, [])


async def test_the_permission_is_used_up_by_the_call_and_not_asked_for_again(
    desk_: Desk, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel", mode="approval")
    (asked,) = await desk_.pending(run, "approval")
    await desk_.accept(asked, decision="allow")
    (first,) = await desk_.pending(run, "elicitation")
    assert not (await db.read(call_of, run)).allowed
    await desk_.answer(first, {"name": NAME, "terms": {"action": "accept"}})
    await desk_.pending(run, "elicitation")
    assert (await db.read(call_of, run)).attempts == 1


async def test_a_block_made_while_a_person_thinks_keeps_the_answer_here_and_stops_the_task(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run)
    await db.write(Tool.objects.filter(name="travel").update, risk="blocked")
    await desk_.answer(first, {"name": NAME, "terms": {"action": "accept"}})
    await desk_.finished(run)
    assert (await db.read(results, run))["steps.0"]["status"] == "failed"
    assert tasks.done("update") == []
    assert len(tasks.done("cancel")) == 1
    assert await _fates(run) == [("failed", "superseded")]


async def test_where_nobody_may_be_asked_the_turn_fails_and_the_server_is_told(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel", human_input=HumanInput.FAIL)
    assert (await desk_.finished(run)).error_code == "human_input_required"
    await desk_.eventually(lambda: tasks.done("cancel"), "the server to be told", run)
    assert tasks.done("update") == []


async def _fates(run: Run) -> list[tuple[str, str | None]]:
    rounds = Round.objects.filter(run=run).order_by("round_index").values_list("status", "outcome")
    return await db.read(lambda: list(rounds))


def _age(tasks: TasksServer) -> float:
    """Seconds since the only task was begun, by the server's own file."""
    (task,) = json.loads((tasks.folder / "tasks.json").read_text()).values()
    return time.time() - float(task["created"])
