"""Removing an end user together with the rules that were made for them."""

from __future__ import annotations

from django.db import transaction

from approvals import policies
from runs import access, end_users
from runs.access import Actor
from runs.models import Role


@transaction.atomic
def remove(actor: Actor, user_id: str) -> None:
    """Revoke every standing rule of an end user, then forget them; admins only.

    Whoever comes back under the same id is asked about everything again. Raises what `runs.end_users.remove` raises.
    """
    found = access.get(actor, end_users.present(actor).select_for_update(), user_id=user_id)
    actor.require(Role.ADMIN)
    for policy_id in found.policies.order_by("pk").values_list("pk", flat=True):
        policies.revoke(actor, policy_id)
    end_users.remove(actor, user_id)
