"""Standing rules: making one, changing it, taking it back.

Who may: a standing rule that is written down on its own needs an admin; an operator may make one only as the
"remember" of a decision (`approvals.decisions`). Admins change and revoke any rule, operators revoke those that they
made. Every change is an entry of the account's ledger that says who made it, in the same transaction (`runs.audit`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils import timezone

from approvals import pins, rehearsal, resolutions
from approvals.condition_shape import condition_digest, match_key, stored_condition
from approvals.facts import Effect
from approvals.models import Change, Policy, Source
from approvals.rule_checks import MAX_REASON, check, check_note
from approvals.rules import (
    MAX_DAYS,
    Rule,
    parse_target,
    preview,
    remembering,
    rule_sentence,
    rule_text,
)
from runs import access, audit
from runs.access import Actor
from runs.durations import utc_text
from runs.end_users import end_user
from runs.errors import ModelValidationError, NotAllowed, StateConflict
from runs.models import Role
from runs.models.exact import is_plain
from runs.visible import visible

__all__ = [
    "MAX_DAYS",
    "Rule",
    "agree",
    "edit",
    "existing",
    "grant",
    "has_expired",
    "parse_target",
    "preview",
    "remembering",
    "renew",
    "revoke",
    "rule_sentence",
    "rule_text",
    "said",
    "saying",
    "store",
    "suspend",
]


@transaction.atomic
def grant(
    actor: Actor | None,
    rule: Rule,
    *,
    source: Source,
    note: str = "",
    shown: str | None = None,
    confirmed: bool = False,
) -> Policy:
    """Store a rule and close the pauses that it now covers (R9); returns the row that stands for it.

    There is one row per scope, target, condition and effect. Granting again renews that row: it pins what is offered
    now, and the later of both expiries holds. `actor` None is the installation itself. For a person the rule is
    rehearsed first: `shown` is the digest of the rehearsal that they saw (None: they saw none), `confirmed` whether
    they confirmed what it found.

    Raises NotAllowed (an operator may grant only with the source run_approval, and not what an admin suspended),
    NotFound (an owner in another account), ModelValidationError, and `rehearsal.UnconfirmedRule`, whose details hold
    the present rehearsal, when `shown` is of something else or findings are not confirmed.
    """
    if actor is not None:
        actor.require(Role.OPERATOR if source is Source.RUN_APPROVAL else Role.ADMIN)
    check(actor, rule, source, note)
    if actor is not None:
        rehearsal.check(rehearsal.rehearse(rule), shown=shown, confirmed=confirmed)
    return store(actor, rule, source=source, note=note)


def store(actor: Actor | None, rule: Rule, *, source: Source, note: str, suspended: str = "") -> Policy:
    """The row of a rule that has been checked, made or renewed; must run inside a transaction.

    `suspended` is why a new row is not in force yet.
    """
    server, tool = parse_target(rule.target)
    if rule.end_user is not None:  # who was removed meanwhile comes back with it
        rule = replace(rule, end_user=end_user(rule.account, rule.end_user.user_id))
    policy, made = Policy.objects.select_for_update().get_or_create(
        account=rule.account,
        effect=rule.effect.value,
        scope=rule.scope.value,
        end_user=rule.end_user,
        run=rule.run,
        target_server=server,
        target_tool=tool,
        condition_digest=condition_digest(rule.condition),
        defaults={
            "condition": stored_condition(rule.condition),
            "match_key": match_key(rule.condition),
            "source": source.value,
            "note": note,
            "created_by": actor.user if actor else None,
            "expires_at": rule.expires_at,
        },
    )
    if not made:
        if policy.suspended_reason and actor is not None and not actor.may(Role.ADMIN):
            raise NotAllowed(f"An admin suspended this rule: {visible(policy.suspended_reason)}")
        if _is_for_admins(actor, policy, source):
            return policy
        policy.expires_at = _later(policy.expires_at, rule.expires_at)
    _pin(policy, suspended)
    _record(actor, Change.MADE if made else Change.RENEWED, policy)
    return policy


def _is_for_admins(actor: Actor | None, policy: Policy, source: Source) -> bool:
    """Whether an admin wrote this rule, so that remembering the same leaves its end and its pins to admins."""
    if actor is None or actor.may(Role.ADMIN) or source is not Source.RUN_APPROVAL:
        return False
    return (
        policy.source == Source.API and Policy.objects.in_force(timezone.now()).filter(pk=policy.pk).exists()
    )


def existing(rule: Rule) -> Policy | None:
    """The row that `store` would renew for a rule, locked; must run inside a transaction."""
    server, tool = parse_target(rule.target)
    rows = Policy.objects.select_for_update().filter(account=rule.account, effect=rule.effect.value)
    return rows.filter(
        scope=rule.scope.value,
        end_user=rule.end_user,
        run=rule.run,
        target_server=server,
        target_tool=tool,
        condition_digest=condition_digest(rule.condition),
    ).first()


@transaction.atomic
def edit(actor: Actor, policy_id: int, *, expires_at: dt.datetime | None, note: str) -> Policy:
    """Set the end (None: until revoked) and the note of a rule. Admins only.

    Raises NotFound, NotAllowed, ModelValidationError for an end that is not in the future, StateConflict for a rule
    that has expired: what it would allow now has to be looked at anew, so it is made anew.
    """
    policy = _administered(actor, policy_id)
    check_note(note)
    _check_not_expired(policy)
    if expires_at is not None and expires_at <= timezone.now():
        raise ModelValidationError("The end of a rule lies in the future. To end it now, revoke it.")
    agree(actor, policy, expires_at=expires_at, note=note, suspended=policy.suspended_reason)
    return policy


def agree(actor: Actor, policy: Policy, *, expires_at: dt.datetime | None, note: str, suspended: str) -> bool:
    """Make a locked row say this; whether anything had to be changed. Must run inside a transaction.

    A rule that comes into force by it is pinned to what is offered now.
    """
    before, comes_back = said(policy), not suspended and (policy.suspended_reason or has_expired(policy))
    policy.expires_at, policy.note, policy.suspended_reason = expires_at, note, suspended
    after = said(policy)
    if before == after:
        return False
    if comes_back:
        _pin(policy)
    else:
        policy.save(update_fields=["expires_at", "note", "suspended_reason"])
    _record(actor, Change.EDITED, policy, {"before": before, "after": after})
    return True


@transaction.atomic
def suspend(actor: Actor, policy_id: int, reason: str) -> Policy:
    """Put an allow rule out of force until it is renewed: the calls that it allowed ask again, with the reason.

    Admins only. Raises NotFound, NotAllowed, ModelValidationError for no reason, or for a deny or ask rule: those keep
    their force until they are revoked.
    """
    policy = _administered(actor, policy_id)
    reason = reason.strip()
    if not 1 <= len(reason) <= MAX_REASON or not is_plain(reason):
        raise ModelValidationError(f"Say in at most {MAX_REASON} characters why the rule is suspended.")
    if policy.effect != Effect.ALLOW:
        raise ModelValidationError("Only an allow can be suspended. Revoke this rule to lift it.")
    policy.suspended_reason = reason
    policy.save(update_fields=["suspended_reason"])
    _record(actor, Change.SUSPENDED, policy, {"reason": reason})
    return policy


@transaction.atomic
def renew(actor: Actor, policy_id: int) -> Policy:
    """Put a suspended rule in force again, for the server and the definitions that are offered now (R28).

    Lifts a suspension by an admin's word too, and closes the pauses that the rule now covers (R9). Admins only. Raises
    NotFound, NotAllowed, StateConflict for a rule that has expired.
    """
    policy = _administered(actor, policy_id)
    _check_not_expired(policy)
    _pin(policy)
    _record(actor, Change.RENEWED, policy)
    return policy


@transaction.atomic
def revoke(actor: Actor, policy_id: int) -> None:
    """Delete a rule; the next call that it allowed is asked about again, also inside a live run (R27).

    Raises NotFound, and NotAllowed for an operator who did not make the rule.
    """
    policy = access.get(actor, Policy.objects.select_for_update(), pk=policy_id)
    actor.require(Role.OPERATOR)
    if not actor.may(Role.ADMIN) and policy.created_by_id != actor.user.pk:
        raise NotAllowed("Somebody else made this rule. Ask an admin to revoke it.")
    _record(actor, Change.REVOKED, policy)
    policy.delete()


def _administered(actor: Actor, policy_id: int) -> Policy:
    """The rule, locked, for an admin to change. Raises NotFound, NotAllowed."""
    policy = access.get(actor, Policy.objects.select_for_update(), pk=policy_id)
    actor.require(Role.ADMIN)
    return policy


def has_expired(policy: Policy) -> bool:
    return policy.expires_at is not None and policy.expires_at <= timezone.now()


def _check_not_expired(policy: Policy) -> None:
    if has_expired(policy):
        raise StateConflict("This rule has expired. Make it anew.")


def _pin(policy: Policy, suspended: str = "") -> None:
    """Put a rule in force, unless it is `suspended`, for what is offered now, and apply it to what waits (R9)."""
    policy.suspended_reason = suspended
    pins.pin(policy)
    policy.save()
    if policy.effect == Effect.ALLOW and not suspended:
        resolutions.close_covered(policy, rule_sentence(policy))


def said(policy: Policy) -> dict[str, str | None]:
    """What can be edited, for the record of a change."""
    return saying(expires_at=policy.expires_at, note=policy.note, suspended=policy.suspended_reason)


def saying(*, expires_at: dt.datetime | None, note: str, suspended: str) -> dict[str, str | None]:
    """The same of a rule that is to say this."""
    return {"expires_at": utc_text(expires_at) if expires_at else None, "note": note, "suspended": suspended}


def _record(
    actor: Actor | None, change: Change, policy: Policy, details: Mapping[str, Any] | None = None
) -> None:
    """Leave word of who changed the rule, in the transaction of the change."""
    audit.note(
        policy.account_id,
        actor.user if actor else None,
        f"policy.{change}",
        f"policy {policy.pk}",
        {"sentence": rule_sentence(policy), **(details or {})},
    )


def _later(one: dt.datetime | None, other: dt.datetime | None) -> dt.datetime | None:
    return None if one is None or other is None else max(one, other)
