"""What a signed-in person may do with runs: account and role first, then `runs.control`.

Changing the mode and answering pauses stand in `approvals.decisions`, because rules have a say in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from runs import access, control
from runs.access import Actor
from runs.control import Overrides, Submission
from runs.errors import ModelValidationError, NotFound
from runs.models import Account, Agent, Role, Run, Task, Turn
from runs.round_rows import Decider
from runs.run_states import HumanInput


class EndUserRequired(ModelValidationError):
    """The account takes no run that is for no end user."""

    code = "end_user_id_required"


def start_run(actor: Actor, agent_id: int, submission: Submission) -> Run:
    """Start an agent of the actor's account in the actor's name.

    Raises NotFound (also for a task of another account, and for an agent of another end user), NotAllowed,
    ModelValidationError.
    """
    agent = access.get(actor, Agent.objects.select_related("account", "end_user"), pk=agent_id)
    actor.require(Role.OPERATOR)
    if submission.task is not None and submission.task.account_id != actor.account.pk:
        raise NotFound(f"There is no such task in {actor.account.name}.")
    user_id = access.one_user(agent, submission.user_id)
    _check_named(agent.account, user_id)
    return control.create_run(agent, replace(submission, user_id=user_id, started_by=actor.user))


def run_task(
    actor: Actor,
    task_id: int,
    *,
    mode: str | None = None,
    human_input: HumanInput | None = None,
    user_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Run:
    """Start a run of a saved task, for the task's end user if it has one. Raises what `start_run` raises."""
    task = access.get(actor, Task.objects.select_related("end_user"), pk=task_id)
    submission = Submission(
        message=task.instructions,
        mode=mode,
        human_input=human_input,
        user_id=access.one_user(task, user_id),
        tools=task.tools,
        metadata=metadata or {},
        task=task,
    )
    return start_run(actor, task.agent_id, submission)


def reply(actor: Actor, run_id: int, message: str, overrides: Overrides | None = None) -> Turn:
    """Open the next turn of a run. Raises NotFound, NotAllowed, ModelValidationError, StateConflict."""
    _authorise(actor, run_id)
    return control.reply(run_id, message, user=actor.user, overrides=overrides)


def cancel_run(actor: Actor, run_id: int, *, via: str = "page") -> Run:
    """End a run and its children. Raises NotFound, NotAllowed, StateConflict if it has ended already."""
    _authorise(actor, run_id)
    return control.cancel(run_id, decider=Decider(user=actor.user, via=via))


def _check_named(account: Account, user_id: str | None) -> None:
    if account.require_end_user_id and user_id is None:
        raise EndUserRequired(
            f"{account.name} takes runs for end users only. Say for which one in user_id.",
            details={"fields": [{"path": ["user_id"], "message": "Say for which end user."}]},
        )


def _authorise(actor: Actor, run_id: int) -> None:
    access.get(actor, Run.objects.all(), pk=run_id)
    actor.require(Role.OPERATOR)
