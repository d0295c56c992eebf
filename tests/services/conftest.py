"""What the tests of services share beside `tests.conftest`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals.gate import PolicyGate
from runs import control
from runs.control import Submission
from runs.gate import Verdict
from runs.models import Agent, EndUser, Run, Server, Step, ToolCall, User
from runs.round_rows import Decider


@pytest.fixture
def verdict_on() -> Callable[..., Verdict]:
    """What the gate says to one operation of a run, from what the database holds now."""

    def ask(run: Run, target: str = "desk:send_email", *, operation: str = "tool") -> Verdict:
        fresh = Run.objects.get(pk=run.pk)
        server, name = target.split(":", 1)
        call = ToolCall(
            step=Step(run=fresh),
            server_name=server,
            operation=operation,
            name=name,
            asked={},
            asked_digest="sha256:none",
        )
        return PolicyGate().decide(fresh, fresh.turns.get(), call)

    return ask


@pytest.fixture
def customer(desk: Server) -> EndUser:
    return EndUser.objects.create(account=desk.account, user_id="cust_123")


@pytest.fixture
def decider(alice: User) -> Decider:
    return Decider(user=alice, via="page")


@pytest.fixture
def make_child(agent: Agent) -> Callable[..., Run]:
    """A run that a step of `parent` started."""

    def make(parent: Run, **fields: Any) -> Run:
        step = Step.objects.create(
            run=parent,
            turn=parent.turns.get(),
            seq=parent.steps.count() + 1,
            kind="run",
            path=f"{parent.steps.count()}",
        )
        return control.create_run(agent, Submission(message="help", **fields), parent_step=step)

    return make
