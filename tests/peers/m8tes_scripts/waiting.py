"""Waiting for a run with people's decisions as callbacks, and every way in which that ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from m8tes import M8tes, PermissionRequest, Run

INTERVAL = 0.2
"""Seconds between two looks."""

PATIENCE = 60.0
"""Seconds in which what should come must come."""


class Person:
    """Decides as told, and keeps what it was asked."""

    def __init__(self, answers: dict[str, Any] | None = None, decision: str = "allow") -> None:
        self.answers, self.decision = answers or {}, decision
        self.questions: list[PermissionRequest] = []
        self.calls: list[PermissionRequest] = []

    def on_question(self, request: PermissionRequest) -> dict[str, Any]:
        self.questions.append(request)
        asked = [question["question"] for question in (request.tool_input or {})["questions"]]
        return {text: self.answers[text] for text in asked if text in self.answers}

    def on_approval(self, request: PermissionRequest) -> str:
        self.calls.append(request)
        return self.decision

    def callbacks(self) -> dict[str, Callable[[PermissionRequest], Any]]:
        return {"on_question": self.on_question, "on_approval": self.on_approval}

    def told(self, run: Run) -> dict[str, Any]:
        """How it went, for the test."""
        return {
            "id": run.id,
            "status": run.status,
            "output": run.output,
            "questions": [request.tool_input for request in self.questions],
            "calls": [request.tool_name for request in self.calls],
            "call_inputs": [request.tool_input for request in self.calls],
        }


def wait(client: M8tes, run_id: int, answers: dict[str, Any], decision: str = "allow") -> dict[str, Any]:
    person = Person(answers, decision)
    run = client.runs.wait(run_id, interval=INTERVAL, timeout=PATIENCE, **person.callbacks())
    return person.told(run)


def create_and_wait(client: M8tes, answers: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    person = Person(answers)
    run = client.runs.create_and_wait(
        poll_interval=INTERVAL, poll_timeout=PATIENCE, **person.callbacks(), **arguments
    )
    return person.told(run)


def reply_and_wait(client: M8tes, run_id: int, message: str) -> dict[str, Any]:
    person = Person()
    run = client.runs.reply_and_wait(
        run_id, message=message, poll_interval=INTERVAL, poll_timeout=PATIENCE, **person.callbacks()
    )
    return person.told(run)


def reply_to_a_run_at_work(client: M8tes, run_id: int, message: str) -> dict[str, Any]:
    """Reply while the run waits for a person; its turn is decided afterwards, then the reply gets its own end."""
    queued = client.runs.reply(run_id, message=message, stream=False)
    person = Person()
    run = client.runs.wait(run_id, interval=INTERVAL, timeout=PATIENCE, **person.callbacks())
    deadline = time.monotonic() + PATIENCE
    while run.pending_queued_message_ids and time.monotonic() < deadline:
        run = client.runs.wait(run_id, interval=INTERVAL, timeout=PATIENCE, **person.callbacks())
    return {**person.told(run), "delivery": queued.delivery, "queued": queued.queued_message_id}


def out_of_time(client: M8tes, agent_id: int) -> dict[str, Any]:
    """A bare wait leaves the run alone when its time is up; one that owns the run cancels it."""
    run = client.runs.create(agent_id=agent_id, message="go", human_in_the_loop=True, stream=False)
    found = {}
    try:
        client.runs.poll(run.id, interval=INTERVAL, timeout=1)
    except TimeoutError:
        found["poll"] = client.runs.get(run.id).status
    try:
        client.runs.poll(run.id, interval=INTERVAL, timeout=1, cancel_on_timeout=True)
    except TimeoutError:
        found["owner"] = client.runs.get(run.id).status
    return found


def plan(client: M8tes, agent_id: int) -> dict[str, Any]:
    """Ask for another plan under the text of the question, approve that one under the header: both are keys."""
    shown: list[dict[str, Any]] = []

    def decide(request: PermissionRequest) -> dict[str, str]:
        [question] = (request.tool_input or {})["questions"]
        shown.append(question)
        if len(shown) == 1:
            return {question["question"]: "Revise: fewer steps"}
        return {question["header"]: "Approve"}

    run = client.runs.create_and_wait(
        agent_id=agent_id, message="go", permission_mode="plan", poll_interval=INTERVAL, on_question=decide
    )
    return {"shown": shown, "status": run.status, "output": run.output}


def without_a_callback(client: M8tes, run_id: int) -> str:
    try:
        client.runs.wait(run_id, interval=INTERVAL, timeout=PATIENCE)
    except RuntimeError as error:
        return type(error).__name__
    return "nothing was raised"


def failing(client: M8tes, agent_id: int) -> list[str]:
    """What a run that fails raises for those who want that, and says to those who do not."""
    from m8tes import RunFailedError

    run = client.runs.create_and_wait(agent_id=agent_id, message="go", poll_interval=INTERVAL)
    try:
        client.runs.poll(run.id, interval=INTERVAL, raise_on_error=True)
    except RunFailedError as error:
        return [run.status, run.error or "", error.message]
    return [run.status, "nothing was raised"]
