"""What is kept of a task between two looks: when to look next, and whose time has passed."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json

import pytest

from runs.models import Step, ToolCall
from runs.worker import task_facts
from runs.worker.task_facts import BACKOFF_MOST, MAX_CANCELS, TaskFacts

NOON = dt.datetime(2026, 11, 1, 12, 0, tzinfo=dt.UTC)
TASK = TaskFacts(id="t-1", server="s", begun_at=NOON, working_since=NOON)


def later(seconds: float) -> dt.datetime:
    return NOON + dt.timedelta(seconds=seconds)


def call(task: TaskFacts, phase: str = "sent", *, allowed: bool = False) -> ToolCall:
    return ToolCall(phase=phase, allowed=allowed, wire={"task": task.stored()})


def step(task: TaskFacts, result: dict[str, str] | None = None, *, phase: str = "sent") -> Step:
    row = Step(kind="call", result=result)
    row.call = call(task, phase)
    return row


def test_a_persons_time_does_not_count_as_the_servers() -> None:
    asked = TASK.paused(later(10))
    assert asked.working_seconds(later(100_000)) == 10
    answered = asked.at_work(later(100_000))
    assert answered.working_seconds(later(100_005)) == 15
    assert answered.at_work(later(100_009)).working_seconds(later(100_010)) == 20


def test_a_server_may_forget_a_task_once_the_time_it_promised_is_over() -> None:
    promised = dataclasses.replace(TASK, ttl=60.0)
    assert promised.kept(later(59))
    assert not promised.kept(later(60))
    assert TASK.kept(later(10**6))


def test_looks_that_come_to_nothing_are_repeated_later_and_later() -> None:
    waits, task = [], TASK
    for _ in range(20):
        task = task.unheard_again(NOON)
        assert task.look_at is not None
        waits.append((task.look_at - NOON).total_seconds())
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(waits[6:]) == {BACKOFF_MOST}


def test_a_server_that_never_hears_is_told_so_often_and_no_more() -> None:
    task, tries = TASK, 0
    while not task.over:
        task, tries = task.told_in_vain(NOON), tries + 1
    assert tries == MAX_CANCELS


def test_what_is_stored_is_json_and_comes_back_as_it_was() -> None:
    task = TaskFacts(
        id="t-1",
        server="s",
        begun_at=NOON,
        look_at=later(1),
        ttl=60.0,
        worked=1.5,
        answered=("a", "b:1"),
        unheard=2,
        cancels=1,
    )
    row = ToolCall(wire={"task": json.loads(json.dumps(task.stored()))})
    assert task_facts.of(row) == task
    assert task_facts.of(ToolCall(wire={})) is None


@pytest.mark.parametrize("phase", ["prepared", "done", "failed", "denied", "unknown"])
def test_a_call_that_waits_for_no_answer_follows_no_task(phase: str) -> None:
    assert task_facts.followed(call(TASK, phase)) is None


def test_a_call_that_is_to_be_made_again_does_not_follow_its_old_task() -> None:
    assert task_facts.followed(call(TASK)) == TASK
    assert task_facts.followed(call(TASK, allowed=True)) is None


def test_a_task_is_forsaken_once_its_step_has_ended_before_it() -> None:
    over = TaskFacts(id="t-1", server="s", begun_at=NOON, over=True)
    assert task_facts.forsaken(step(TASK)) is None
    assert task_facts.forsaken(step(TASK, {"status": "cancelled"}, phase="unknown")) == TASK
    assert task_facts.forsaken(step(over, {"status": "done"}, phase="done")) is None
    assert task_facts.forsaken(Step(kind="say", result={"status": "done"})) is None


def test_its_server_is_told_at_once_the_first_time_and_after_a_while_again() -> None:
    resting = TaskFacts(id="t-1", server="s", begun_at=NOON, look_at=later(60))
    ended = {"status": "cancelled"}
    assert task_facts.wanted_at(step(resting)) == later(60)
    assert task_facts.wanted_at(step(resting, ended, phase="unknown")) is None
    again = resting.told_in_vain(NOON)
    assert task_facts.wanted_at(step(again, ended, phase="unknown")) == later(1)
