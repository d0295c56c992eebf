"""What a card offers to remember: every rule in its exact words, with what it would have done (R16, R23)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from approvals.cards.values import PastDenial, RememberChoice
from approvals.facts import Scope
from approvals.rehearsal import Rehearsal, Stage, rehearse
from approvals.remembering import rule_for
from approvals.rules import Rule
from runs.errors import ModelValidationError
from runs.models import Round
from runs.visible import visible

REMEMBER_DAYS: Final = 30
DENIALS_LISTED: Final = 5

_LATER: Final = "The rule with your arguments is shown before it is saved: press Allow to see it."


def remember_choices(round_: Round, *, edited: Mapping[str, Any] | None = None) -> tuple[RememberChoice, ...]:
    """What may be remembered with an allow of `round_`, narrowest first; nothing for strict tools (R16).

    None is preselected, whatever the API suggests to its clients: on the page, Allow alone allows one call. `edited`
    are the arguments that would be sent instead of those asked for.
    """
    offered = (round_.context.get("verdict") or {}).get("remember") or []
    scopes = [Scope(scope) for scope in offered if scope in list(Scope)]
    arguments = round_.context.get("arguments") or {} if edited is None else edited
    rules = [
        (scope, days, exactly, rule)
        for exactly in (False, True)
        for scope in scopes
        for days in ((None,) if scope is Scope.RUN else (REMEMBER_DAYS, None))
        if (rule := _rule(round_, scope, days, arguments if exactly else None)) is not None
    ]
    if not rules:
        return ()
    stage = Stage(round_.run.account, rules[0][3].target)
    return tuple(
        _choice(round_, scope, days, exactly, rehearse(rule, stage)) for scope, days, exactly, rule in rules
    )


def while_editing(choices: Iterable[RememberChoice]) -> tuple[RememberChoice, ...]:
    """The same choices while arguments are being typed: a rule about exactly these cannot be shown yet, nor saved."""
    return tuple(
        RememberChoice(value=choice.value, label=choice.label, rule=_LATER, exactly=True)
        if choice.exactly
        else choice
        for choice in choices
    )


def _rule(round_: Round, scope: Scope, days: int | None, arguments: Mapping[str, Any] | None) -> Rule | None:
    """None for a rule that is not offered: the run cannot have it, or its arguments are too long to be read in it."""
    try:
        return rule_for(round_, scope, days, arguments)
    except ModelValidationError:
        return None


def _choice(
    round_: Round, scope: Scope, days: int | None, exactly: bool, rehearsal: Rehearsal
) -> RememberChoice:
    return RememberChoice(
        value=":".join([scope.value, *([str(days)] if days else []), *(["exactly"] if exactly else [])]),
        label=f"{_label(round_, scope, days)}{' (exactly these arguments)' if exactly else ''}",
        rule=visible(rehearsal.rule.sentence),
        shown=rehearsal.digest,
        exactly=exactly,
        replay=rehearsal.summary if rehearsal.decided else "",
        risks=tuple(tool.sentence for tool in rehearsal.high_stakes),
        denials=tuple(
            PastDenial(run_id=call.run_id, round_id=call.round_id, who=visible(call.person))
            for call in rehearsal.covered_denials[:DENIALS_LISTED]
        ),
        more_denials=max(len(rehearsal.covered_denials) - DENIALS_LISTED, 0),
    )


def _label(round_: Round, scope: Scope, days: int | None) -> str:
    if scope is Scope.RUN:
        return f"Allow in run {round_.run_id}; ends with it"
    user = round_.run.end_user
    whom = (
        f"for {visible(user.user_id)}" if scope is Scope.USER and user else "in every run without an end user"
    )
    return f"Always allow {whom}, {f'for {days} days' if days else 'until somebody revokes it'}"
