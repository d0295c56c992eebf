"""What a person asks to be remembered with an allowed call, and the rule that it becomes (R16, R23, R26, R29)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals.conditions import Condition, exactly
from approvals.facts import Effect, Scope
from approvals.gate import evaluate
from approvals.models import Policy, Source
from approvals.policies import Rule, grant, remembering, rule_sentence
from approvals.rehearsal import UnconfirmedRule
from runs.access import Actor
from runs.errors import ManagedInputConflict, ManagedInputValidationError, ModelValidationError
from runs.models import Round
from runs.requests import APPROVAL_KEY
from runs.round_rows import ending
from runs.round_states import RoundOutcome


@dataclass(frozen=True, kw_only=True)
class Remember:
    """Allow the same tool from now on: in this "run", for its "user", or in the "account".

    `days` is for how many days, None until revoked. `exactly` is only with the arguments of this call, as edited if
    they were edited. `shown` is the digest of the rehearsal that the person saw (None: they saw none), `confirmed`
    whether they confirmed its findings; the two say how it was asked for, not what.
    """

    scope: str
    days: int | None = None
    exactly: bool = False
    shown: str | None = field(default=None, compare=False)
    confirmed: bool = field(default=False, compare=False)


def rule_of(round_: Round, remember: Remember, payload: Mapping[str, Mapping[str, Any]]) -> Rule:
    """The rule to store with the decision; raises ManagedInputValidationError unless the pause offers such a rule.

    The call is decided anew, because a tool may have become strict, or another tool, since the card was drawn.
    """
    offered = round_.context["verdict"]["remember"]
    now = evaluate(round_.run, round_.turn, round_.own_step.call)
    still = now.effect is Effect.ALLOW or remember.scope in now.remember
    if remember.scope not in offered or not still:
        raise ManagedInputValidationError(
            f"This decision cannot be remembered for the {remember.scope}: {now.reason} Decide this call alone.",
            details={"remember": offered if still else []},
        )
    content = payload[APPROVAL_KEY]["content"]
    arguments: Mapping[str, Any] = content.get("arguments", round_.context["arguments"])
    try:
        return rule_for(round_, Scope(remember.scope), remember.days, arguments if remember.exactly else None)
    except ModelValidationError as error:
        raise ManagedInputValidationError(error.message) from error


def rule_for(round_: Round, scope: Scope, days: int | None, arguments: Mapping[str, Any] | None) -> Rule:
    """The rule that remembers the call of a pause, for exactly these arguments if there are any given.

    Raises ModelValidationError for a scope that the run does not have, a number of days out of range, or arguments that
    are too long to be read in a rule.
    """
    condition: Condition = () if arguments is None else exactly(arguments)
    return remembering(round_.run, f"{round_.server_name}:{round_.operation_name}", scope, days, condition)


def save(actor: Actor, rule: Rule, remember: Remember) -> Policy:
    """Store the rule, in the transaction of the decision.

    Raises ManagedInputValidationError, with the rehearsal to show in its details, when the rule is another one than
    was shown, or has findings that were not confirmed.
    """
    try:
        return grant(
            actor, rule, source=Source.RUN_APPROVAL, shown=remember.shown, confirmed=remember.confirmed
        )
    except UnconfirmedRule as unconfirmed:
        raise ManagedInputValidationError(
            unconfirmed.message, details={"rehearsal": unconfirmed.details}
        ) from unconfirmed


def remembered(policy: Policy, remember: Remember) -> dict[str, Any]:
    """What the round's context says of a rule that was stored with the decision (R29)."""
    facts = {"scope": remember.scope, "days": remember.days, "exactly": remember.exactly}
    return {"remembered": {**facts, "rule_id": policy.pk, "text": rule_sentence(policy)}}


def check_repeat(round_: Round, remember: Remember | None) -> None:
    """A repeated decision must repeat what was to be remembered too (R3); it never stores a rule again.

    Raises ManagedInputConflict.
    """
    stored = round_.context.get("remembered")
    before = (
        Remember(scope=stored["scope"], days=stored["days"], exactly=stored.get("exactly", False))
        if stored
        else None
    )
    if before != remember and round_.outcome == RoundOutcome.ALLOWED:
        raise ManagedInputConflict(
            "This call was allowed already, and what you ask to remember was not part of that. Make a rule for it.",
            details=ending(round_),
        )
