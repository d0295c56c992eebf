"""Tasks: instructions for an agent that are saved, changed and started by their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import transaction

from runs import access, audit
from runs.access import Actor
from runs.canonical import digest
from runs.end_users import end_user
from runs.errors import ModelValidationError
from runs.models import Agent, Role, Task
from runs.models.exact import is_line
from runs.submission_checks import checked_message, checked_tools

MAX_NAME = 120
FIELDS: Final = ("name", "instructions", "tools", "default_mode")


@transaction.atomic
def create(actor: Actor, agent_id: int, values: Mapping[str, Any], *, user_id: str | None = None) -> Task:
    """Save a task; `values` by the names of FIELDS. With `user_id` it may run for that end user only.

    Raises NotFound (also for an agent of another end user), NotAllowed, ModelValidationError.
    """
    agent = access.get(actor, Agent.objects.select_related("end_user"), pk=agent_id)
    actor.require(Role.OPERATOR)
    user_id = access.one_user(agent, user_id)
    task = Task(account=actor.account, agent=agent, end_user=end_user(actor.account, user_id))
    return _store(actor, task, values)


@transaction.atomic
def change(actor: Actor, task_id: int, values: Mapping[str, Any]) -> Task:
    """Change what is given; runs that are under way keep what they started with. Raises NotFound, NotAllowed."""
    task = access.get(actor, Task.objects.select_for_update(of=("self",), no_key=True), pk=task_id)
    actor.require(Role.OPERATOR)
    return _store(actor, task, values)


@transaction.atomic
def remove(actor: Actor, task_id: int) -> None:
    """Delete a task; its runs stay. Raises NotFound, NotAllowed."""
    task = access.get(actor, Task.objects.select_for_update(of=("self",)), pk=task_id)
    actor.require(Role.OPERATOR)
    task.delete()
    audit.note(actor.account, actor.user, "task.removed", f"task {task_id}", {"name": task.name})


def _store(actor: Actor, task: Task, values: Mapping[str, Any]) -> Task:
    given = {name: values[name] for name in FIELDS if name in values}
    if "instructions" in given:
        given["instructions"] = checked_message(given["instructions"])
    if "name" in given:
        given["name"] = given["name"].strip()
        if len(given["name"]) > MAX_NAME:
            raise ModelValidationError(f"A task's name has at most {MAX_NAME} characters.")
        if not is_line(given["name"]):
            raise ModelValidationError("A task's name is one line of text, without control characters.")
    if "tools" in given:
        given["tools"] = checked_tools(given["tools"])
    for name, value in given.items():
        setattr(task, name, value)
    task.save()
    facts = {
        "name": task.name,
        "agent": task.agent_id,
        "instructions_digest": digest(task.instructions),
        "tools": task.tools,
        "default_mode": task.default_mode,
    }
    audit.note(actor.account, actor.user, "task.saved", f"task {task.pk}", facts)
    return task
