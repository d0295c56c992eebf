"""What a rule has to be before it is stored, whoever wants it and by which way."""

from __future__ import annotations

from typing import Final

from approvals.condition_shape import TESTED, check_for, condition_digest, has_pattern, match_key
from approvals.models import Policy, Source
from approvals.rules import Rule, parse_target
from runs.access import Actor
from runs.errors import ModelValidationError, NotFound
from runs.models.exact import is_plain
from runs.visible import visible

MAX_NOTE: Final = 500
MAX_REASON: Final = 300
MAX_TESTED: Final = 40
"""Rules of one owner and target whose conditions have to be tried on every call; it bounds what a decision reads."""


def check(actor: Actor | None, rule: Rule, source: Source, note: str) -> None:
    """Raise NotFound for an owner in another account, ModelValidationError for what cannot be stored."""
    _check_account(actor, rule)
    check_note(note)
    check_rule(rule, source)


def check_note(note: str) -> None:
    if len(note) > MAX_NOTE or not is_plain(note):
        raise ModelValidationError(f"A note has at most {MAX_NOTE} characters, all of them whole.")


def check_rule(rule: Rule, source: Source) -> None:
    """Raise ModelValidationError for a target or condition that a rule of this source cannot have."""
    server, tool = parse_target(rule.target)
    check_for(rule.effect, rule.condition)
    if source is Source.RUN_APPROVAL and has_pattern(rule.condition):
        raise ModelValidationError(
            "What is remembered is remembered literally; patterns are for admins to write."
        )
    if match_key(rule.condition) != TESTED:
        return
    beside = Policy.objects.filter(
        account=rule.account,
        scope=rule.scope.value,
        end_user=rule.end_user,
        run=rule.run,
        target_server=server,
        target_tool=tool,
        match_key=TESTED,
    ).exclude(condition_digest=condition_digest(rule.condition))
    if beside.count() >= MAX_TESTED:
        raise ModelValidationError(
            f"There are {MAX_TESTED} rules with conditions on {visible(rule.target)} already. Revoke some, or write "
            "one pattern for several."
        )


def _check_account(actor: Actor | None, rule: Rule) -> None:
    """An owner of another account looks like one that does not exist (house style 9)."""
    accounts = {owner.account_id for owner in (rule.end_user, rule.run) if owner is not None}
    accounts.add(actor.account.pk if actor else rule.account.pk)
    if accounts != {rule.account.pk}:
        raise NotFound(f"There is no such user or run in {rule.account.name}.")
