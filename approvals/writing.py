"""A rule that an admin writes on a page: first seen with its rehearsal, then stored as it was seen (R23, R26)."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from approvals import policies
from approvals.condition_shape import normal
from approvals.conditions import Condition
from approvals.facts import Effect, Scope
from approvals.models import Policy, Source
from approvals.rehearsal import Rehearsal, rehearse
from approvals.rule_checks import check
from approvals.rules import Rule, end_of
from runs.access import Actor
from runs.end_users import end_user
from runs.models import Role


@dataclass(frozen=True, kw_only=True)
class Written:
    """What was typed: `user_id` None is the whole account, `days` None until it is revoked.

    The end user and the server of the target need not exist yet.
    """

    effect: Effect
    target: str
    user_id: str | None = None
    condition: Condition = ()
    days: int | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A rule to be and what it would have done; `existing` is the row that saving it would renew."""

    rehearsal: Rehearsal
    existing: Policy | None


@transaction.atomic
def preview(actor: Actor, written: Written) -> Preview:
    """Look at a rule before it is stored; changes nothing. Admins only.

    Raises NotAllowed, and ModelValidationError for a rule that cannot be.
    """
    actor.require(Role.ADMIN)
    rule = _rule(actor, written)
    check(actor, rule, Source.API, written.note)
    found = Preview(rehearsal=rehearse(rule), existing=policies.existing(rule))
    transaction.set_rollback(True)  # an end user who was not known yet was made for the look only
    return found


@transaction.atomic
def write(actor: Actor, written: Written, *, shown: str, confirmed: bool) -> Policy:
    """Store the rule as it was seen. Raises what `approvals.policies.grant` raises."""
    actor.require(Role.ADMIN)
    rule = _rule(actor, written)
    return policies.grant(actor, rule, source=Source.API, note=written.note, shown=shown, confirmed=confirmed)


def _rule(actor: Actor, written: Written) -> Rule:
    return Rule(
        account=actor.account,
        effect=written.effect,
        scope=Scope.ACCOUNT if written.user_id is None else Scope.USER,
        target=written.target,
        end_user=end_user(actor.account, written.user_id),
        condition=normal(written.condition),
        expires_at=end_of(written.days),
    )
