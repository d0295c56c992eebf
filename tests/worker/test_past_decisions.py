"""What a real worker and real people leave behind is what rules are replayed over."""

from __future__ import annotations

from approvals.facts import Effect, Scope
from approvals.models import Source
from approvals.past_calls import PastCall, last_decisions
from approvals.policies import Rule, grant
from approvals.rehearsal import rehearse
from runs import db
from tests.worker.conftest import Desk

MAIL = {"to": "ann@example.com", "subject": "Hello", "body": "Text"}
SEND = [{"call": "desk:send_email", "args": MAIL, "as": "m"}, {"finish": "{{ m.status }}"}]


async def test_denied_allowed_and_automatic_calls_are_told_apart(desk_: Desk) -> None:
    denied = await desk_.start(SEND, server="desk", mode="approval")
    (round_,) = await desk_.pending(denied, "approval")
    await desk_.accept(round_, decision="deny")
    await desk_.finished(denied)
    allowed = await desk_.start(SEND, server="desk", mode="approval")
    (round_,) = await desk_.pending(allowed, "approval")
    await desk_.accept(round_, decision="allow")
    await desk_.finished(allowed)
    by_itself = await desk_.start(SEND, server="desk")
    await desk_.finished(by_itself)

    def look() -> tuple[list[tuple[int, bool, bool]], PastCall, int]:
        deny = Rule(account=desk_.account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="desk:send_email")
        history = last_decisions(desk_.account, "desk")
        told = [(call.run_id, call.allowed, bool(call.person)) for call in history.calls]
        return told, history.calls[-1], rehearse(deny).would_deny

    told, first, would_deny = await db.read(look)
    assert told == [(by_itself.pk, True, False), (allowed.pk, True, True), (denied.pk, False, True)]
    assert (first.target, first.arguments, first.round_id is not None) == ("desk:send_email", MAIL, True)
    assert would_deny == 3


async def test_a_call_that_a_deny_rule_stopped_is_an_automatic_denial(desk_: Desk) -> None:
    deny = Rule(account=desk_.account, effect=Effect.DENY, scope=Scope.ACCOUNT, target="desk:send_email")
    await db.write(grant, None, deny, source=Source.API)
    run = await desk_.start(SEND, server="desk")
    await desk_.finished(run)

    history = await db.read(last_decisions, desk_.account, "desk")
    assert [(call.allowed, call.person, call.round_id) for call in history.calls] == [(False, "", None)]
