"""What the tests of services share beside `tests.conftest`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from approvals.gate import PolicyGate
from runs.gate import Verdict
from runs.models import EndUser, Run, Server, Step, ToolCall


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
