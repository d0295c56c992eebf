"""Renewing a suspended rule from a page that shows what has changed since it was made, or why it was suspended (R28).

`approvals.policies.renew` pins whatever is offered at that moment; here it is made sure that this is what the admin
saw, because a server may change again between the look and the click.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from approvals import changes, pins, policies
from approvals.change_values import Renewal, Shown
from approvals.facts import Drifted
from approvals.models import Policy
from approvals.rules import rule_sentence
from runs import access
from runs.access import Actor
from runs.canonical import digest
from runs.errors import StateConflict
from runs.models import Role, Server


def renewal_of(actor: Actor, policy_id: int | None, *, in_view: Drifted | None = None) -> Renewal | None:
    """What there is to renew about a rule; None if it is gone or in force for all that it covers.

    `in_view` is the change that the asking page shows.
    """
    rules = access.visible(actor, Policy.objects.select_related("end_user"))
    policy = rules.filter(pk=policy_id).first() if policy_id is not None else None
    renewal = _renewal(actor, policy, pins.changes(policy)) if policy else None
    if renewal is None or in_view is None:
        return renewal
    return replace(renewal, in_view=renewal.token == changes.token([in_view]))


def _renewal(actor: Actor, policy: Policy, drifted: Sequence[Drifted]) -> Renewal | None:
    if not drifted and not policy.suspended_reason:
        return None
    return Renewal(
        policy_id=policy.pk,
        rule=rule_sentence(policy),
        tools=len(drifted),
        token=_token(policy, drifted),
        may=actor.may(Role.ADMIN),
    )


def _token(policy: Policy, drifted: Sequence[Drifted]) -> str:
    """Stands for what renewing puts aside; for the changes alone unless a person has suspended the rule too."""
    if not policy.suspended_reason:
        return changes.token(drifted)
    return digest([changes.token(drifted), policy.suspended_reason])


def shown(actor: Actor, policy_id: int) -> tuple[Policy, Renewal | None, Sequence[Shown]]:
    """A rule with every change that renewing it would accept. Raises NotFound."""
    policy = access.get(actor, Policy.objects.select_related("end_user"), pk=policy_id)
    drifted = pins.changes(policy)
    found = changes.show_all(policy.account_id, policy.target_server, drifted)
    return policy, _renewal(actor, policy, drifted), found


@transaction.atomic
def renew(actor: Actor, policy_id: int, token: str) -> Policy:
    """Renew a rule for what `token` stands for, and close the pauses that it covers again (R9).

    Raises NotFound, NotAllowed, and StateConflict if something else has changed since, or nothing has.
    """
    policy = access.get(actor, Policy.objects.all(), pk=policy_id)
    actor.require(Role.ADMIN)
    # A look at the server stores what it finds under this lock, so nothing changes between the check and the pins; nor
    # does the rule itself, which somebody may be suspending for another reason.
    servers = Server.objects.select_for_update(no_key=True)
    servers.filter(account=policy.account_id, name=policy.target_server).first()
    policy = access.get(actor, Policy.objects.select_for_update(), pk=policy_id)
    drifted = pins.changes(policy)
    if not drifted and not policy.suspended_reason:
        raise StateConflict("Nothing has changed since this rule was made, or somebody renewed it already.")
    if _token(policy, drifted) != token:
        raise StateConflict("It has changed again since you looked. Read what changed, then renew the rule.")
    return policies.renew(actor, policy_id)
