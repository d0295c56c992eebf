"""Who may drive a run: claim, fence, renew, release (design section 6).

Every function is one conditional UPDATE whose row count is the answer. `lease_token` only grows; a worker that
was replaced carries an old one and can write nothing. Whose clock counts is decided by `runs.clock`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import F, Q

from runs import clock, engines, hosts
from runs.errors import LeaseLost, SessionBusyError
from runs.models import LONG_AGO, Run


@dataclass(frozen=True)
class Lease:
    """The right to write for one run, as long as the row still carries `token`."""

    run_id: int
    owner: str
    token: int
    seen: int
    """The wake that this claim answers to."""


def ttl() -> dt.timedelta:
    return dt.timedelta(seconds=settings.M3.lease_seconds)


def claim(run_id: int, owner: str) -> Lease | None:
    """Take the run if it has an unseen wake, nobody holds it and it is pinned nowhere else; None if nothing is due.

    Raises SessionBusyError while another worker drives it, or alone can (A24).
    """
    now = clock.moment()
    taken = (
        Run.objects.filter(pk=run_id, lease_until__lte=now)
        .filter(~Q(wake_seq=F("seen_seq")), hosts.within_reach())
        .update(lease_owner=owner, lease_token=F("lease_token") + 1, lease_until=now + ttl())
    )
    if not taken:
        due_elsewhere = ~Q(wake_seq=F("seen_seq")) & hosts.out_of_reach()
        if Run.objects.filter(Q(lease_until__gt=clock.moment()) | due_elsewhere, pk=run_id).exists():
            raise SessionBusyError(f"Run {run_id} is another worker's to drive; that one will see the wake.")
        return None
    token, seen = Run.objects.values_list("lease_token", "wake_seq").get(pk=run_id)
    return Lease(run_id, owner, token, seen)


def fence(lease: Lease, **fields: Any) -> None:
    """First statement of every write of a worker: proves the lease, renews it, locks the row, sets `fields`.

    Raises LeaseLost if the run was taken over, cancelled or finished by someone else; nothing is written then.
    """
    held = Run.objects.filter(pk=lease.run_id, lease_token=lease.token, lease_owner=lease.owner)
    if not held.update(**{"lease_until": clock.moment() + ttl(), **fields}):
        raise LeaseLost(f"Run {lease.run_id} is no longer driven by {lease.owner}.")


def release(lease: Lease, *, seen: int, next_at: dt.datetime | None = None) -> bool:
    """Give the run back, having answered wake `seen`. True if a newer wake came meanwhile: claim again."""
    held = Run.objects.filter(pk=lease.run_id, lease_token=lease.token, lease_owner=lease.owner)
    if not held.update(lease_owner=None, lease_until=LONG_AGO, seen_seq=seen, next_at=next_at):
        raise LeaseLost(f"Run {lease.run_id} is no longer driven by {lease.owner}.")
    return Run.objects.filter(pk=lease.run_id).exclude(wake_seq=seen).exists()


def give_up(lease: Lease) -> None:
    """Give the run back unfinished (the worker stops): it stays due, and nobody waits for the lease to run out."""
    held = Run.objects.filter(pk=lease.run_id, lease_token=lease.token, lease_owner=lease.owner)
    held.update(lease_owner=None, lease_until=LONG_AGO)


def wake(run_id: int) -> None:
    """Make the run due and tell the engine; must be called inside the transaction of whatever woke it."""
    Run.objects.filter(pk=run_id).update(wake_seq=F("wake_seq") + 1, next_at=None)
    engines.enqueue(run_id)


def revoke(run_id: int) -> None:
    """Take the run away from whoever drives it (cancel): their next write raises LeaseLost."""
    Run.objects.filter(pk=run_id).update(
        lease_token=F("lease_token") + 1, lease_owner=None, lease_until=LONG_AGO
    )


def take_over() -> int:
    """Free every lease at once. Only legal while holding the one-process lock: every owner is then dead."""
    return Run.objects.filter(lease_owner__isnull=False).update(lease_owner=None, lease_until=LONG_AGO)
