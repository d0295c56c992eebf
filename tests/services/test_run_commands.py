"""Starting, answering back and cancelling runs: only operators, only in their own account."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runs import commands
from runs.access import Actor
from runs.control import Submission
from runs.errors import M3Error, NotAllowed, NotFound
from runs.models import Agent, Run, Task, User

Acting = Callable[[User], Actor]


def test_an_operator_starts_answers_back_and_cancels(acting: Acting, alice: User, agent: Agent) -> None:
    actor = acting(alice)
    run = commands.start_run(actor, agent.pk, Submission(message="Go"))
    turn = commands.reply(actor, run.pk, "And then?")
    cancelled = commands.cancel_run(actor, run.pk)

    assert (run.started_by, turn.index) == (alice, 1)
    assert (cancelled.status, cancelled.outcome) == ("finished", "cancelled")


@pytest.mark.parametrize(("name", "refusal"), [("vera", NotAllowed), ("otto", NotFound)])
def test_others_may_do_none_of_it(
    acting: Acting,
    request: pytest.FixtureRequest,
    make_run: Callable[..., Run],
    name: str,
    refusal: type[M3Error],
) -> None:
    actor = acting(request.getfixturevalue(name))
    run = make_run()

    with pytest.raises(refusal):
        commands.start_run(actor, run.agent_id, Submission(message="Go"))
    with pytest.raises(refusal):
        commands.reply(actor, run.pk, "And then?")
    with pytest.raises(refusal):
        commands.cancel_run(actor, run.pk)
    assert Run.objects.get().turns.count() == 1


def test_a_task_of_another_account_is_not_found(
    acting: Acting, alice: User, otto: User, agent: Agent
) -> None:
    theirs = Agent.objects.create(account=acting(otto).account, name="Theirs")
    task = Task.objects.create(account=theirs.account, agent=theirs, instructions="x")

    with pytest.raises(NotFound):
        commands.start_run(acting(alice), agent.pk, Submission(message="Go", task=task))
