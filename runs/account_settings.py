"""What an admin sets for a whole account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import transaction

from runs import audit
from runs.access import Actor
from runs.models import Account, Role

SETTINGS: Final = ("require_end_user_id", "approval_email_enabled")


@transaction.atomic
def change(actor: Actor, values: Mapping[str, bool]) -> Account:
    """Set those of SETTINGS that are given; admins only."""
    actor.require(Role.ADMIN)
    account = Account.objects.select_for_update(no_key=True).get(pk=actor.account.pk)
    chosen = {name: values[name] for name in SETTINGS if name in values}
    for name, value in chosen.items():
        setattr(account, name, value)
    account.save(update_fields=list(chosen))
    audit.note(account, actor.user, "account.changed", f"account {account.pk}", chosen)
    return account
