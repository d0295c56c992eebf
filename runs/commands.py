"""What a signed-in person may do with runs: account and role first, then `runs.control`.

Changing the mode and answering pauses stand in `approvals.decisions`, because rules have a say in them.
"""

from __future__ import annotations

from dataclasses import replace

from runs import access, control
from runs.access import Actor
from runs.control import Submission
from runs.errors import NotFound
from runs.models import Agent, Role, Run, Turn
from runs.round_rows import Decider


def start_run(actor: Actor, agent_id: int, submission: Submission) -> Run:
    """Start an agent of the actor's account in the actor's name.

    Raises NotFound (also for a task of another account), NotAllowed, ModelValidationError.
    """
    agent = access.get(actor, Agent.objects.select_related("account"), pk=agent_id)
    actor.require(Role.OPERATOR)
    if submission.task is not None and submission.task.account_id != actor.account.pk:
        raise NotFound(f"There is no such task in {actor.account.name}.")
    return control.create_run(agent, replace(submission, started_by=actor.user))


def reply(actor: Actor, run_id: int, message: str) -> Turn:
    """Open the next turn of a run. Raises NotFound, NotAllowed, ModelValidationError, StateConflict."""
    _authorise(actor, run_id)
    return control.reply(run_id, message, user=actor.user)


def cancel_run(actor: Actor, run_id: int, *, via: str = "page") -> Run:
    """End a run and its children. Raises NotFound, NotAllowed, StateConflict if it has ended already."""
    _authorise(actor, run_id)
    return control.cancel(run_id, decider=Decider(user=actor.user, via=via))


def _authorise(actor: Actor, run_id: int) -> None:
    access.get(actor, Run.objects.all(), pk=run_id)
    actor.require(Role.OPERATOR)
