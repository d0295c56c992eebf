"""Who may drive a run: claim, fence, renew, release (design section 6).

Every function is one conditional UPDATE whose row count is the answer. `lease_token` only grows; a worker that
was replaced carries an old one and can write nothing. Whose clock counts is decided by `runs.clock`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import DurationField, F, Q

from runs import clock, engines, hosts, row_writes, write_behind
from runs.errors import LeaseLost, SessionBusyError
from runs.models import LONG_AGO, Run
from runs.models.run import RunQuerySet
from runs.prepared import Asked, Param, Rows, Update, UpdateOne, together


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


def _the_run() -> RunQuerySet:
    return Run.objects.filter(pk=Param("run", Run._meta.pk))


def _held() -> RunQuerySet:
    return _the_run().filter(
        lease_token=Param.of(Run, "lease_token"), lease_owner=Param.of(Run, "lease_owner")
    )


def _of(lease: Lease) -> dict[str, Any]:
    return {"run": lease.run_id, "lease_token": lease.token, "lease_owner": lease.owner}


def _now() -> Any:
    return clock.moment() if clock.is_shared() else Param.of(Run, "lease_until", "now")


def _until() -> Any:
    """When a lease that is taken or renewed by this statement runs out."""
    return (
        clock.moment() + Param("ttl", DurationField()) if clock.is_shared() else Param.of(Run, "lease_until")
    )


def _times() -> dict[str, Any]:
    """What `_now` and `_until` need; on a shared clock only how long."""
    if clock.is_shared():
        return {"ttl": ttl()}
    now = clock.now()
    return {"now": now, "lease_until": now + ttl()}


_CLAIM = UpdateOne(
    lambda: (
        _the_run().filter(
            ~Q(wake_seq=F("seen_seq")),
            hosts.within_reach(Param.of(Run, "pin", "here")),
            lease_until__lte=_now(),
        ),
        {
            "lease_owner": Param.of(Run, "lease_owner"),
            "lease_token": F("lease_token") + 1,
            "lease_until": _until(),
        },
    ),
    ("lease_token", "wake_seq"),
)
_BUSY: Rows[tuple[int]] = Rows(
    lambda: (
        _the_run()
        .filter(
            Q(lease_until__gt=_now())
            | (~Q(wake_seq=F("seen_seq")) & hosts.out_of_reach(Param.of(Run, "pin", "here")))
        )
        .values_list("pk")
    )
)
_RENEW = Update(lambda: (_held(), {"lease_until": _until()}))
_RELEASE = UpdateOne(
    lambda: (
        _held(),
        {
            "lease_owner": None,
            "lease_until": LONG_AGO,
            "seen_seq": Param.of(Run, "seen_seq"),
            "next_at": Param.of(Run, "next_at"),
        },
    ),
    ("wake_seq",),
)
_WAKE = Update(lambda: (_the_run(), {"wake_seq": F("wake_seq") + 1, "next_at": None}))


def claim(run_id: int, owner: str) -> Lease | None:
    """Take the run if it has an unseen wake, nobody holds it and it is pinned nowhere else; None if nothing is due.

    Raises SessionBusyError while another worker drives it, or alone can (A24).
    """
    (row,) = together(claiming(run_id, owner))
    return claimed(run_id, owner, row)


def claiming(run_id: int, owner: str) -> Asked[tuple[int, ...] | None]:
    """`claim`, to be asked together with what whoever claims wants to know; `claimed` makes a lease of the answer."""
    here = hosts.here() if hosts.shared() else ""
    return _CLAIM.asked(run=run_id, lease_owner=owner, here=here, **_times())


def claimed(run_id: int, owner: str, row: tuple[int, ...] | None) -> Lease | None:
    """What `claim` gives and raises."""
    if row is None:
        if _BUSY(run=run_id, here=hosts.here(), **_times()):
            raise SessionBusyError(f"Run {run_id} is another worker's to drive; that one will see the wake.")
        return None
    token, seen = row
    return Lease(run_id, owner, token, seen)


def fence(lease: Lease, **fields: Any) -> None:
    """First statement of every write of a worker: proves the lease, renews it, locks the row, sets `fields`.

    Raises LeaseLost if the run was taken over, cancelled or finished by someone else; nothing is written then.
    """
    if fields:
        held = Run.objects.filter(pk=lease.run_id, lease_token=lease.token, lease_owner=lease.owner)
        mine = held.update(**{"lease_until": clock.moment() + ttl(), **fields})
    else:
        mine = _RENEW(**_of(lease), **_times())
    if not mine:
        raise LeaseLost(f"Run {lease.run_id} is no longer driven by {lease.owner}.")


def release(lease: Lease, *, seen: int, next_at: dt.datetime | None = None) -> bool:
    """Give the run back, having answered wake `seen`. True if a newer wake came meanwhile: claim again."""
    run = write_behind.held(Run, lease.run_id)
    if run is not None and (run.lease_token, run.lease_owner) == (lease.token, lease.owner):
        run.lease_owner, run.lease_until, run.seen_seq, run.next_at = None, LONG_AGO, seen, next_at
        row_writes.save(run, ("lease_owner", "lease_until", "seen_seq", "next_at"))
        return run.wake_seq != seen
    released = _RELEASE.after(**_of(lease), seen_seq=seen, next_at=next_at)
    if released is None:
        raise LeaseLost(f"Run {lease.run_id} is no longer driven by {lease.owner}.")
    (wake_seq,) = released
    return wake_seq != seen


def give_up(lease: Lease) -> None:
    """Give the run back unfinished (the worker stops): it stays due, and nobody waits for the lease to run out."""
    held = Run.objects.filter(pk=lease.run_id, lease_token=lease.token, lease_owner=lease.owner)
    held.update(lease_owner=None, lease_until=LONG_AGO)


def wake(run_id: int) -> None:
    """Make the run due and tell the engine; must be called inside the transaction of whatever woke it."""
    run = write_behind.held(Run, run_id)
    if run is None:
        _WAKE.later(run=run_id)
    else:
        run.wake_seq, run.next_at = run.wake_seq + 1, None
        row_writes.save(run, ("wake_seq", "next_at"))
    write_behind.at_end(_tell_engine, run_id)


def _tell_engine(run_ids: Sequence[int], _: Sequence[Any]) -> None:
    for run_id in dict.fromkeys(run_ids):
        engines.enqueue(run_id)


def revoke(run_id: int) -> None:
    """Take the run away from whoever drives it (cancel): their next write raises LeaseLost."""
    Run.objects.filter(pk=run_id).update(
        lease_token=F("lease_token") + 1, lease_owner=None, lease_until=LONG_AGO
    )


def take_over() -> int:
    """Free every lease at once. Only legal while holding the one-process lock: every owner is then dead."""
    return Run.objects.filter(lease_owner__isnull=False).update(lease_owner=None, lease_until=LONG_AGO)
