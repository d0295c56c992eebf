"""Allowing a tool beforehand, as m8tes clients do (m8tes-http 3, 4.3): standing allow rules of one scope each.

Deny and ask rules, and what one run remembers, are no standing approvals: nobody finds or revokes them here.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from approvals import pins, policies
from approvals.facts import Effect, Scope
from approvals.models import Policy, PolicyQuerySet, Source
from approvals.rehearsal import rehearse
from approvals.rules import Rule, parse_target
from runs import access
from runs.access import Actor
from runs.end_users import end_user
from runs.errors import NotFound, StateConflict
from runs.models import Role
from runs.visible import visible


def standing(actor: Actor) -> PolicyQuerySet:
    """The allow rules in force that outlive a run, of every scope of the actor's account."""
    rules = Policy.objects.standing().in_force(timezone.now())
    return rules.filter(account=actor.account, effect=Effect.ALLOW.value)


@transaction.atomic
def preapprove(actor: Actor, target: str, *, user_id: str | None) -> Policy:
    """Allow `server` or `server:tool`, which need not exist yet, in the runs of an end user or in those of nobody.

    The end user is created by this if nothing has named them. Asking for it is explicit, so what the rehearsal would
    ask to confirm (high stakes, calls that people denied) counts as confirmed (m8tes-http 4.3); calls that wait and
    are covered go on. Raises NotAllowed (admins only), ModelValidationError, and StateConflict for a rule that is
    suspended: what it was suspended for has to be seen first.
    """
    actor.require(Role.ADMIN)
    parse_target(target)
    user = end_user(actor.account, user_id)
    rule = Rule(
        account=actor.account,
        effect=Effect.ALLOW,
        scope=Scope.ACCOUNT if user is None else Scope.USER,
        target=target,
        end_user=user,
    )
    _check_in_force(rule)
    shown = rehearse(rule).digest
    return policies.grant(actor, rule, source=Source.API, shown=shown, confirmed=True)


def _check_in_force(rule: Rule) -> None:
    """Saying the same again is no look at why the rule was suspended, so it does not lift that."""
    policy = policies.existing(rule)
    if policy is None:
        return
    reason = policy.suspended_reason or ("what it allows has changed" if pins.changes(policy) else "")
    if reason:
        raise StateConflict(
            f"Rule {policy.pk} is suspended: {visible(reason)}. Look at it on its page and renew it there.",
            details={"rule_id": policy.pk},
        )


@transaction.atomic
def withdraw(actor: Actor, policy_id: int, *, user_id: str | None) -> None:
    """Revoke a standing allow rule. Raises NotFound, also if it is of another scope than this, and NotAllowed."""
    rule = access.get(actor, standing(actor).select_related("end_user"), pk=policy_id)
    owner = rule.end_user.user_id if rule.end_user else None
    if owner != user_id:
        raise NotFound(f"There is no such policy in {actor.account.name}.")
    policies.revoke(actor, policy_id)
