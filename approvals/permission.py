"""May this call run? One pure decision with its reason (design section 7).

Plain module: the gate passes in the call, the rules that might concern it and the time. The steps below
stand in the order of the design and the first that matches decides; the order of the rules given never
matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeVar

from approvals.facts import CallFacts, Drift, Drifted, Effect, PolicyFacts, Scope, concerns, covers
from runs.described import DescribedEnum
from runs.risk import HIGH_STAKES, Risk, is_safe
from runs.run_states import PermissionMode
from runs.visible import visible

__all__ = [
    "CallFacts",
    "Code",
    "Decision",
    "Drift",
    "Drifted",
    "Effect",
    "PolicyFacts",
    "Scope",
    "decide",
    "in_mode",
    "redecide",
]


class Code(DescribedEnum):
    """Which step decided."""

    NOT_SELECTED = "not_selected", "The caller limited the run to other tools."
    REMOVED = "removed", "The tool is no longer offered."
    BLOCKED = "blocked", "The tool is blocked."
    DENY_RULE = "deny_rule", "A rule denies it."
    PLAN_FIRST = "plan_first", "A plan has to be approved first."
    STRICT = "strict", "The tool always needs the decision of a person."
    CHANGED = "changed", "The tool has changed since the turn started."
    ASK_RULE = "ask_rule", "A rule asks for a decision."
    AUTONOMOUS = "autonomous", "The run is autonomous."
    SELECTED = "selected", "The caller approved it by naming it."
    SUSPENDED = "suspended", "The rule that allowed it is suspended."
    REMEMBERED = "remembered", "It was allowed for this run."
    ALLOW_RULE = "allow_rule", "A rule allows it."
    HIGH_STAKES = "high_stakes", "It is high-stakes and no rule covers it."
    SAFE = "safe", "It is safe."
    NO_RULE = "no_rule", "No rule covers it."
    HUMAN_INPUT_REQUIRED = "human_input_required", "A person would have to decide, but nobody may be asked."


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What may happen with the call, and why.

    `reason` is a sentence for the card, the timeline and the agent; `rule_id` is the rule that decided.
    `remember` lists the scopes for which an allow may be remembered, narrowest first (empty: no remember
    control), `remember_preselected` whether the card ticks it. `diff` is what has changed, for the card to show.
    """

    effect: Effect
    code: Code
    reason: str
    risk: Risk
    rule_id: int | None = None
    remember: tuple[Scope, ...] = ()
    remember_preselected: bool = False
    diff: Drifted | None = None


def decide(call: CallFacts, policies: Sequence[PolicyFacts], *, now: datetime) -> Decision:
    """Allow, Ask or Deny by the order of design section 7; the first matching step wins.

    `policies` may hold rules that do not concern the call; they are ignored, as are those expired at `now`.
    Where nobody may be asked an Ask becomes a Deny with the code human_input_required, which ends the turn.
    """
    rules = sorted((rule for rule in policies if concerns(rule, call, now=now)), key=_precedence)
    decision = next(found for step in _STEPS if (found := step(call, rules)) is not None)
    if decision.effect is Effect.ASK and not call.may_ask:
        return _decision(
            call,
            Effect.DENY,
            Code.HUMAN_INPUT_REQUIRED,
            f"{decision.reason} Nobody may be asked in this run.",
        )
    return decision


Key = TypeVar("Key")


def redecide(
    pending: Mapping[Key, CallFacts], policies: Sequence[PolicyFacts], *, now: datetime
) -> dict[Key, Decision]:
    """The pending gates that an Allow now closes, after a switch of mode or a new rule (R9, m8tes-http 4.4).

    The calls carry the new mode. A gate that would now be denied, or asked again, stays as it is.
    """
    decided = {key: decide(call, policies, now=now) for key, call in pending.items()}
    return {key: decision for key, decision in decided.items() if decision.effect is Effect.ALLOW}


def in_mode(call: CallFacts, mode: PermissionMode) -> CallFacts:
    """The same call in a run whose mode was switched."""
    return replace(call, mode=mode)


_SCOPE_ORDER: Final = {Scope.RUN: 0, Scope.USER: 1, Scope.ACCOUNT: 2}


def _precedence(rule: PolicyFacts) -> tuple[bool, int, bool, int]:
    """Of several rules with one effect the most specific is named as the one that decided."""
    return (":" not in rule.target, _SCOPE_ORDER[rule.scope], not rule.condition, rule.id)


def _first(rules: Sequence[PolicyFacts], effect: Effect) -> PolicyFacts | None:
    return next((rule for rule in rules if rule.effect is effect), None)


def _decision(
    call: CallFacts,
    effect: Effect,
    code: Code,
    reason: str,
    *,
    rule: PolicyFacts | None = None,
    diff: Drifted | None = None,
) -> Decision:
    return Decision(
        effect=effect, code=code, reason=reason, risk=call.risk, rule_id=rule.id if rule else None, diff=diff
    )


def _name(call: CallFacts) -> str:
    return visible(call.target)


def _rememberable(call: CallFacts) -> tuple[Scope, ...]:
    """Account-wide remember exists only on runs that carry no user (design section 7)."""
    return (Scope.RUN, Scope.ACCOUNT if call.user_id is None else Scope.USER)


Step = Callable[[CallFacts, Sequence[PolicyFacts]], Decision | None]


def _not_selected(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.selection is None or any(covers(target, call.target) for target in call.selection):
        return None
    return _decision(
        call,
        Effect.DENY,
        Code.NOT_SELECTED,
        f"{_name(call)} is not selected: this run is limited to other tools.",
    )


def _removed(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.drift is not Drift.REMOVED:
        return None
    return _decision(call, Effect.DENY, Code.REMOVED, f"{_name(call)} is no longer offered.")


def _blocked(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.risk is not Risk.BLOCKED:
        return None
    return _decision(call, Effect.DENY, Code.BLOCKED, f"{_name(call)} is blocked.")


def _deny_rule(call: CallFacts, rules: Sequence[PolicyFacts]) -> Decision | None:
    rule = _first(rules, Effect.DENY)
    if rule is None:
        return None
    return _decision(call, Effect.DENY, Code.DENY_RULE, f"Rule {rule.id} denies {_name(call)}.", rule=rule)


def _plan_first(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.mode is not PermissionMode.PLAN or call.plan_approved or is_safe(call.risk, call.target):
        return None
    return _decision(
        call, Effect.DENY, Code.PLAN_FIRST, f"{_name(call)} has to wait: propose a plan first ({call.risk})."
    )


def _strict(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.risk is not Risk.STRICT:
        return None
    return _decision(call, Effect.ASK, Code.STRICT, f"{_name(call)} always needs the decision of a person.")


def _changed(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.drift is not Drift.CHANGED:
        return None
    return _decision(
        call, Effect.ASK, Code.CHANGED, f"{_name(call)} has changed since this turn started.", diff=call.diff
    )


def _ask_rule(call: CallFacts, rules: Sequence[PolicyFacts]) -> Decision | None:
    rule = _first(rules, Effect.ASK)
    if rule is None:
        return None
    # No remember: an allow never beats an ask rule, so it would be a promise that is not kept.
    reason = f"Rule {rule.id} asks for a decision on {_name(call)}."
    return _decision(call, Effect.ASK, Code.ASK_RULE, reason, rule=rule)


def _autonomous(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.mode is not PermissionMode.AUTONOMOUS:
        return None
    return _decision(call, Effect.ALLOW, Code.AUTONOMOUS, "The run is autonomous.")


def _selected(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    # Outside the selection was denied in the first step, so a selection that is there names the call.
    if call.selection is None or not call.selection_approves:
        return None
    return _decision(
        call, Effect.ALLOW, Code.SELECTED, f"The caller selected {_name(call)}, which approves it."
    )


def _suspended(call: CallFacts, rules: Sequence[PolicyFacts]) -> Decision | None:
    rule = next((rule for rule in rules if rule.effect is Effect.ALLOW and rule.suspended is not None), None)
    if rule is None:
        return None
    # No remember: the suspended rule would ask again all the same until an admin renews or revokes it.
    reason = f"Rule {rule.id}, which allowed {_name(call)}, is suspended: {visible(rule.suspended or '')}"
    return _decision(call, Effect.ASK, Code.SUSPENDED, reason, rule=rule, diff=rule.diff)


def _allow_rule(call: CallFacts, rules: Sequence[PolicyFacts]) -> Decision | None:
    rule = _first(rules, Effect.ALLOW)
    if rule is None:
        return None
    if rule.scope is Scope.RUN:
        reason = f"{_name(call)} was allowed for this run."
        return _decision(call, Effect.ALLOW, Code.REMEMBERED, reason, rule=rule)
    return _decision(call, Effect.ALLOW, Code.ALLOW_RULE, f"Rule {rule.id} allows {_name(call)}.", rule=rule)


def _high_stakes(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if call.risk not in HIGH_STAKES:
        return None
    reason = f"{_name(call)} is high-stakes ({call.risk}); no policy covers it."
    asked = _decision(call, Effect.ASK, Code.HIGH_STAKES, reason)
    return replace(asked, remember=_rememberable(call))


def _safe(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision | None:
    if not is_safe(call.risk, call.target):
        return None
    return _decision(call, Effect.ALLOW, Code.SAFE, f"{_name(call)} is safe ({call.risk}).")


def _no_rule(call: CallFacts, _rules: Sequence[PolicyFacts]) -> Decision:
    reason = f"{_name(call)} may change things ({call.risk}); no policy covers it."
    asked = _decision(call, Effect.ASK, Code.NO_RULE, reason)
    return replace(asked, remember=_rememberable(call), remember_preselected=True)


_STEPS: Final[tuple[Step, ...]] = (
    _not_selected,  # 0
    _blocked,  # 1
    _removed,
    _deny_rule,  # 2
    _plan_first,  # 3
    _strict,  # 4
    _changed,
    _ask_rule,
    _autonomous,  # 5
    _selected,  # 6
    _suspended,  # 7
    _allow_rule,  # 8
    _high_stakes,  # 9
    _safe,  # 10
    _no_rule,  # 11
)
