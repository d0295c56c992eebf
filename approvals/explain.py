"""What would be decided about a call, and why, without making it: for admins who look a rule over.

The same facts and the same decision as the gate's, for a call that exists only in the question. It changes nothing,
counts no use, and knows no run: rules that one run remembers, a caller's selection and what a turn froze do not take
part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils import timezone

from approvals import gate, pins
from approvals.conditions import Condition, exactly
from approvals.facts import CallFacts, Effect, Scope
from approvals.models import Policy
from approvals.permission import Decision, decide
from approvals.rules import parse_target, rule_sentence, rule_text
from runs.access import Actor
from runs.canonical import NotJson, canonical_json
from runs.errors import ModelValidationError
from runs.local_tools import LOCAL
from runs.models import EndUser
from runs.run_states import PermissionMode
from runs.visible import visible

NO_RUN: Final = 0
"""The id of the run that the call belongs to: no run has it."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A call to be: `target` is `server:tool`, whether there is such a server or not.

    `user_id` is the end user of the run, None for a run without one; they need not exist yet. `plan_approved` matters
    in plan mode only.
    """

    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    user_id: str | None = None
    mode: str = PermissionMode.APPROVAL.value
    plan_approved: bool = False


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The decision, the rule that it names (None if no rule decided, or its sentence), and what a person could have
    remembered with an allow, narrowest first. `remarks` are what one should know of the target."""

    decision: Decision
    rule: Policy | None
    rule_sentence: str
    remember: tuple[str, ...]
    remarks: tuple[str, ...]


def explain(actor: Actor, question: Question) -> Explanation:
    """Decide about a call that nobody makes. Anybody in the account may ask.

    Raises ModelValidationError for a target without a tool, arguments that are no JSON object, or an unknown mode.
    """
    server, tool, mode = _checked(question)
    now, offer = timezone.now(), pins.look(actor.account, server, tool)
    user = EndUser.objects.filter(account=actor.account, user_id=question.user_id).first()
    candidates = Policy.objects.candidates(
        account=actor.account.pk,
        end_user=user.pk if user else None,
        run=None,
        target=(server, tool),
        arguments=question.arguments,
        now=now,
    )
    rows = {policy.pk: policy for policy in candidates}
    call = CallFacts(
        target=question.target,
        risk=gate.tool_risk(server, tool, offer),
        mode=mode,
        run_id=NO_RUN,
        user_id=question.user_id,
        arguments=question.arguments,
        plan_approved=question.plan_approved,
    )
    decision = decide(call, [gate.policy_facts(policy, offer) for policy in rows.values()], now=now)
    rule = rows.get(decision.rule_id) if decision.rule_id is not None else None
    return Explanation(
        decision=decision,
        rule=rule,
        rule_sentence=rule_sentence(rule) if rule else "",
        remember=tuple(
            _rule_to_be(question, scope, condition)
            for scope in decision.remember
            for condition in (exactly(question.arguments), ())
        ),
        remarks=tuple(_remarks(server, tool, offer)),
    )


def _checked(question: Question) -> tuple[str, str, PermissionMode]:
    server, tool = parse_target(question.target)
    if not tool:
        raise ModelValidationError("Only a call can be explained. Write its tool as server:tool.")
    if question.user_id is not None and not question.user_id.strip():
        raise ModelValidationError(
            "A user_id has at least one character. Leave it out for a run without a user."
        )
    try:
        canonical_json(question.arguments)
    except NotJson as error:
        raise ModelValidationError(f"Arguments are a JSON object. {error.message}") from error
    try:
        return server, tool, PermissionMode(question.mode)
    except ValueError as error:
        raise ModelValidationError(f"A mode is one of: {', '.join(PermissionMode)}.") from error


def _rule_to_be(question: Question, scope: Scope, condition: Condition) -> str:
    return rule_text(
        effect=Effect.ALLOW,
        target=question.target,
        scope=scope,
        user_id=question.user_id,
        run_id=None,
        condition=condition,
        expires_at=None,
    )


def _remarks(server: str, tool: str, offer: pins.Offer) -> list[str]:
    if server == LOCAL:
        return []
    if offer.server is None:
        return [
            f"There is no server {visible(server)} yet. This is how a call would be decided once there is."
        ]
    if offer.identity is None:
        return [f"{visible(server)} cannot be reached as the host permits it now; a call would be denied."]
    if offer.tool is None:
        return [f"{visible(server)} does not offer {visible(tool)} now; a call would be denied."]
    return []
