"""Closing an account: from then on nothing of it goes on here, because it goes on in another installation.

A run that went on in two places would act twice. So closing holds every unfinished run by a lease that never ends, and
does so only while nobody drives one: what a worker has under way is either finished before, or keeps the account open.
Pages, API and programs are refused with a sentence; time itself (sleeps, deadlines, webhooks) passes by.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import transaction
from django.utils import timezone

from runs import audit, clock
from runs.durations import utc_text
from runs.errors import NotAllowed, StateConflict
from runs.models import LONG_AGO, Account, Run
from runs.prepared import Param, Rows

NEVER: Final = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)
"""`lease_until` of a run that nobody may drive. It has no owner, so taking over a dead process' leases leaves it."""

HANDED_OVER: Final = "account.handed_over"
REOPENED: Final = "account.reopened"
IMPORTED: Final = "account.imported"
"""Written by imports; a copy comes closed."""

_ACCOUNT: Rows[Account] = Rows(lambda: Account.objects.filter(pk=Param("account", Account._meta.pk)))


def refuse_closed(account: Account) -> None:
    """Raise NotAllowed if the account is closed."""
    if account.closed_at is not None:
        raise NotAllowed(
            f"{account.name} was handed over to another installation on {account.closed_at:%d %B %Y}. Nothing of it "
            "goes on here. Ask whoever runs this server for the new address."
        )


def begin_in(account_id: int) -> None:
    """`refuse_closed` for whoever has just stored a row of the account, inside that transaction.

    The stored row keeps the account's row from being closed until the commit, so what is read here stays true.
    """
    (account,) = _ACCOUNT(account=account_id)
    refuse_closed(account)


@transaction.atomic
def close(account_id: int, *, alone: bool) -> Account:
    """Close the account and tell its ledger; one that is closed already stays as it is.

    `alone`: the caller holds the lock under which no other process drives runs, so that every lease is a dead one's.
    Raises StateConflict, changing nothing, while a run is being driven.
    """
    live = Run.objects.live().filter(account=account_id)
    # 1. The runs, young to old as everywhere: nobody claims or answers one until this commits.
    locked = dict(live.select_for_update().order_by("-pk").values_list("pk", "lease_until"))
    # 2. The account: waits for whoever is storing a row of it, and holds up whoever is about to.
    account = Account.objects.select_for_update().get(pk=account_id)
    if account.closed_at is not None:
        return account
    driven = sorted(run_id for run_id, until in locked.items() if until > clock.now())
    if driven and not alone:
        some = ", ".join(map(str, driven[:10]))
        raise StateConflict(
            f"A worker is at work on runs of {account.name} ({some}). Stop every process first."
        )
    if live.exclude(pk__in=locked).exists():
        raise StateConflict(f"A run of {account.name} was just begun. Stop every process first.")
    live.update(lease_owner=None, lease_until=NEVER)
    account.closed_at = timezone.now()
    account.save(update_fields=["closed_at"])
    audit.note(account, None, HANDED_OVER, f"account {account.pk}", {"at": utc_text(account.closed_at)})
    return account


@transaction.atomic
def reopen(account_id: int) -> Account:
    """Let everything of the account go on here again. Raises StateConflict for one that is not closed."""
    account = Account.objects.select_for_update().get(pk=account_id)
    if account.closed_at is None:
        raise StateConflict(f"{account.name} is open already.")
    account.closed_at = None
    account.save(update_fields=["closed_at"])
    Run.objects.filter(account=account, lease_until=NEVER).update(lease_until=LONG_AGO)
    audit.note(account, None, REOPENED, f"account {account.pk}")
    return account
