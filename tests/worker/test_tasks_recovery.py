"""Workers and servers come and go while a task is under way; nothing is lost and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs import db
from runs.control import cancel
from runs.models import Run, Server, ToolCall
from runs.round_rows import Decider
from tests.worker.conftest import Desk, replaced, results
from tests.worker.following import NAME, TasksServer, call_of, told

BOTH = {"name": NAME, "terms": {"action": "accept"}}


async def test_another_worker_follows_a_task_that_works(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    tasks: TasksServer,
    at_tasks: Callable[..., Any],
) -> None:
    run = await at_tasks("report", {"seconds": 3.0})
    await desk_.eventually(lambda: tasks.done("look"), "the first look", run)
    second = await replaced(desk_of, desk_, stop)
    assert (await second.finished(run)).outcome == "completed"
    assert len(tasks.done("begun")) == 1


async def test_another_worker_delivers_what_was_answered_while_none_was_there(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    tasks: TasksServer,
    at_tasks: Callable[..., Any],
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run)
    await stop()
    await desk_.answer(first, BOTH)
    second = await replaced(desk_of, desk_, stop)
    (seat,) = await second.pending(run)
    await second.answer(seat, {"seat:1": NAME})
    await second.finished(run)
    assert [update["keys"] for update in tasks.done("update")] == [["name", "terms"], ["seat:1"]]


@pytest.mark.parametrize(("tool", "updates"), [("slow_to_answer", 1), ("loses_an_answer", 2)])
async def test_an_answer_whose_arrival_is_uncertain_leaves_again_only_if_it_is_still_wanted(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    tasks: TasksServer,
    at_tasks: Callable[..., Any],
    tool: str,
    updates: int,
) -> None:
    """The worker dies after the answer has left and before the server has acknowledged it."""
    run = await at_tasks(tool)
    (round_,) = await desk_.pending(run)
    await desk_.answer(round_, {"name": NAME})
    await desk_.eventually(lambda: tasks.done("update"), "the answer to arrive", run)
    second = await replaced(desk_of, desk_, stop)
    assert (await second.finished(run)).outcome == "completed"
    assert len(tasks.done("update")) == updates
    assert "Ada" in (await db.read(results, run))["steps.0"]["result"]


async def test_a_task_whose_id_was_journalled_and_no_more_is_followed(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    tasks: TasksServer,
    at_tasks: Callable[..., Any],
) -> None:
    """The worker dies between storing the server's reply and looking at it."""
    run = await at_tasks("report", {"seconds": 1.0})
    await desk_.eventually(lambda: tasks.done("look"), "the first look", run)
    await stop()

    def go_back() -> None:
        call = call_of(run)
        reply = {"resultType": "task", "taskId": call.wire.pop("task")["id"], "status": "working"}
        call.raw_result = reply
        call.save()

    await db.write(go_back)
    second = await replaced(desk_of, desk_, stop)
    assert (await second.finished(run)).outcome == "completed"
    assert len(tasks.done("begun")) == 1


async def test_a_result_that_was_journalled_and_no_more_is_the_calls_result_without_another_look(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    tasks: TasksServer,
    at_tasks: Callable[..., Any],
) -> None:
    run = await at_tasks("never_ends")
    await desk_.eventually(lambda: tasks.done("look"), "the first look", run)
    await stop()
    tasks.kill()
    raw = {"resultType": "task", "taskId": "t-9", "content": [{"type": "text", "text": "it ended after all"}]}
    await db.write(ToolCall.objects.filter(step__run=run).update, raw_result=raw)
    second = await replaced(desk_of, desk_, stop)
    await second.finished(run)
    assert (await db.read(results, run))["steps.0"]["result"] == "it ended after all"


async def test_a_server_that_is_away_is_asked_later_and_the_page_says_so(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run)
    tasks.kill()
    await desk_.answer(first, BOTH)
    await desk_.eventually(lambda: "cannot be reached" in told(run), "a look that comes to nothing", run)
    tasks.start()
    (seat,) = await desk_.pending(run)
    await desk_.answer(seat, {"seat:1": NAME})
    assert (await desk_.finished(run)).outcome == "completed"
    assert (len(tasks.done("begun")), len(tasks.done("update"))) == (1, 2)


@pytest.mark.parametrize(("decision", "begun"), [("happened", 1), ("run_again", 2)])
async def test_a_server_that_forgot_its_task_leaves_the_outcome_to_a_person(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any], decision: str, begun: int
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run)
    tasks.forget()
    await desk_.answer(first, BOTH)
    (asked,) = await desk_.pending(run, "outcome")
    assert "does not know its task any more" in asked.context["reason"]
    assert tasks.done("update") == []
    await desk_.accept(asked, decision=decision)
    if decision == "run_again":
        (again,) = await desk_.pending(run, "elicitation")
        await desk_.answer(again, BOTH)
        (seat,) = await desk_.pending(run, "elicitation")
        await desk_.answer(seat, {"seat:1": NAME})
    assert (await desk_.finished(run)).outcome == "completed"
    assert len(tasks.done("begun")) == begun


async def test_a_task_whose_time_is_over_leaves_the_outcome_to_a_person(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("short_lived")
    (asked,) = await desk_.pending(run, "outcome")
    assert "Task has expired" in asked.context["reason"]
    assert (await db.read(call_of, run)).phase == "unknown"


async def test_another_server_in_its_place_is_neither_asked_nor_answered(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("travel")
    (first,) = await desk_.pending(run)
    looks = len(tasks.done("look"))
    await db.write(Server.objects.filter(name="tasks").update, url=tasks.url + "?other")
    await desk_.answer(first, BOTH)
    (asked,) = await desk_.pending(run, "outcome")
    assert "Another server stands in the place" in asked.context["reason"]
    assert (len(tasks.done("look")), tasks.done("update")) == (looks, [])


async def test_cancelling_the_run_tells_the_server(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("never_ends")
    await desk_.eventually(lambda: tasks.done("look"), "the first look", run)
    await _cancel(desk_, run)
    await desk_.eventually(lambda: tasks.done("cancel"), "the server to be told", run)
    assert (await db.read(call_of, run)).phase == "unknown"
    assert await _told_to_stop(desk_, run)


async def test_a_run_cancelled_while_no_worker_was_there_tells_the_server_as_soon_as_one_is(
    desk_: Desk,
    desk_of: Callable[..., Any],
    stop: Callable[[], Any],
    tasks: TasksServer,
    at_tasks: Callable[..., Any],
) -> None:
    run = await at_tasks("travel")
    await desk_.pending(run)
    await stop()
    await _cancel(desk_, run)
    second = await replaced(desk_of, desk_, stop)
    await second.eventually(lambda: tasks.done("cancel"), "the server to be told", run)


async def test_a_server_that_is_away_when_the_run_is_cancelled_is_told_when_it_is_back(
    desk_: Desk, tasks: TasksServer, at_tasks: Callable[..., Any]
) -> None:
    run = await at_tasks("never_ends")
    await desk_.eventually(lambda: tasks.done("look"), "the first look", run)
    tasks.kill()
    await _cancel(desk_, run)

    def told_in_vain() -> bool:
        return bool(call_of(run).wire["task"]["cancels"])

    await desk_.eventually(told_in_vain, "a first try", run)
    tasks.start()
    await desk_.eventually(lambda: tasks.done("cancel"), "the server to be told", run)
    assert await _told_to_stop(desk_, run)


async def _cancel(desk: Desk, run: Run) -> None:
    await db.write(cancel, run.pk, decider=Decider(user=desk.person, via="api"))


async def _told_to_stop(desk: Desk, run: Run) -> Any:
    events = run.events.filter(type="tool_call.task_cancelled", payload__heard=True)
    return await desk.eventually(events.exists, "the event of it", run)
