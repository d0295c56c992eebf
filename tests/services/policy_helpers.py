"""What the tests of rules share: rules in short, granting as a page does, and decisions of the past."""

from __future__ import annotations

from typing import Any

from approvals.conditions import ArgumentTest, TestKind
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.policies import Rule, grant
from approvals.rehearsal import rehearse
from runs import events
from runs.access import Actor
from runs.canonical import digest
from runs.gate import Verdict
from runs.models import Account, Run, Server, Step, ToolCall


def rule(
    account: Account, target: str = "desk:send_email", effect: Effect = Effect.ALLOW, **fields: Any
) -> Rule:
    """A rule of the account, or of the end user or run that `fields` names."""
    scope = Scope.USER if fields.get("end_user") else Scope.RUN if fields.get("run") else Scope.ACCOUNT
    return Rule(account=account, effect=effect, scope=scope, target=target, **fields)


def equals(name: str, value: Any) -> ArgumentTest:
    return ArgumentTest(path=(name,), value=value)


def matches(name: str, pattern: str) -> ArgumentTest:
    return ArgumentTest(path=(name,), value=pattern, kind=TestKind.GLOB)


def grant_as_shown(actor: Actor, wanted: Rule, *, source: Source = Source.API, note: str = "") -> Policy:
    """As somebody does who saw the rehearsal and confirmed it."""
    return grant(actor, wanted, source=source, note=note, shown=rehearse(wanted).digest, confirmed=True)


def decided_at_once(
    run: Run, target: str, *, allowed: bool, operation: str = "tool", **arguments: Any
) -> ToolCall:
    """A call that the gate decided without a person, with the event that the worker writes."""
    server, name = target.split(":", 1)
    seq = run.steps.count() + 1
    step = Step.objects.create(run=run, turn=run.turns.get(), seq=seq, kind="call", path=f"steps.{seq}")
    call = ToolCall.objects.create(
        step=step,
        server=Server.objects.filter(account=run.account, name=server).first(),
        server_name=server,
        operation=operation,
        name=name,
        asked=arguments,
        asked_digest=digest(arguments),
    )
    said_by_gate(call, allowed=allowed)
    return call


def said_by_gate(call: ToolCall, *, allowed: bool) -> None:
    step = call.step
    events.record(
        step.run,
        "tool_call.allowed" if allowed else "tool_call.denied",
        {"step": step.seq, "tool": call.full_name, "reason": "So it was."},
        turn=step.turn,
    )


def verdict_with(run: Run, arguments: dict[str, Any], target: str = "desk:send_email") -> Verdict:
    """What the gate says to a call with these arguments."""
    from approvals.gate import PolicyGate

    fresh = Run.objects.get(pk=run.pk)
    server, name = target.split(":", 1)
    call = ToolCall(
        step=Step(run=fresh),
        server_name=server,
        operation="tool",
        name=name,
        asked=arguments,
        asked_digest="",
    )
    return PolicyGate().decide(fresh, fresh.turns.get(), call)
