"""What the tests of services share beside `tests.conftest`: a server that its host really offers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import settings

from approvals.gate import PolicyGate
from runs.binding import identity_of
from runs.gate import Verdict
from runs.models import EndUser, Run, Server, Step, ToolCall


@pytest.fixture
def desk(desk: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server of `tests.conftest`, with its entry in the host's list of stdio servers."""
    monkeypatch.setitem(settings.M3.stdio_servers, "desk", {"command": "desk-server"})
    desk.identity = identity_of(desk)
    desk.save()
    return desk


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
