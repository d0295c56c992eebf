"""Runs that only one host can go on with, because a process there keeps the session of an older server.

Such a run is pinned to its host (`Run.pin`): workers elsewhere leave it alone as long as any worker of that host gives
signs of life, and for M3_HOST_GONE_SECONDS after the last one. Then it is let go, and whoever takes it does what the
contract says of a lost session (C35). On SQLite one process has everything and nothing is pinned.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.db.models import Q

from runs import clock, database
from runs.keeper.place import this_host
from runs.models import LeftSession, Run, WorkerHost

BEATS = 6
"""Signs of life that have to fail before a host counts as gone."""

BATCH = 500
"""Most rows that are dealt with at one look."""


def here() -> str:
    """The host that this process is on."""
    return this_host(settings.M3.data_dir / "keepers")


def gone_after() -> dt.timedelta:
    """How long no worker of a host may be heard of before it is gone."""
    return dt.timedelta(seconds=settings.M3.host_gone_seconds)


def shared() -> bool:
    """Whether workers of several hosts may be on the current database."""
    return database.current().on_server


# --- signs of life ----------------------------------------------------------------------------------------


def beat() -> None:
    """A worker of this host is alive. Raises nothing that a caller could mend; the next beat tries again."""
    seen = WorkerHost.objects.filter(pk=here()).update(seen_at=clock.moment())
    if not seen:
        WorkerHost.objects.bulk_create([WorkerHost(pk=here(), seen_at=clock.now())], ignore_conflicts=True)


def is_gone(host: str) -> bool:
    """Whether no worker of `host` has been heard of for so long that its sessions count as lost."""
    return not WorkerHost.objects.filter(pk=host, seen_at__gt=clock.moment() - gone_after()).exists()


def forget_old() -> None:
    """Forget hosts that went so long ago that every keeper there has ended by itself."""
    ended = clock.now() - max(dt.timedelta(seconds=settings.M3.keeper_orphan_seconds), gone_after())
    WorkerHost.objects.filter(seen_at__lt=ended).delete()
    LeftSession.objects.filter(left_at__lt=ended).delete()


# --- pinned runs ------------------------------------------------------------------------------------------


def within_reach(place: Any = None) -> Q:
    """The runs that a worker here may drive: those that are pinned nowhere else. `place` stands for this host in a
    prepared statement."""
    return Q(pin=None) | Q(pin=place or here()) if shared() else Q()


def out_of_reach(place: Any = None) -> Q:
    """The runs that only workers of another host may drive; `place` as for `within_reach`."""
    return Q(pin__isnull=False) & ~Q(pin=place or here()) if shared() else Q(pk__in=[])


def pin(run_id: int) -> None:
    """From here on only this host can go on with the run; inside the boundary that stores where its session is."""
    if shared():
        Run.objects.filter(pk=run_id).update(pin=here())


def unpin(run_id: int) -> None:
    """The last session of the run that was kept is over, or lost."""
    Run.objects.filter(pk=run_id, pin__isnull=False).update(pin=None)


def let_go() -> int:
    """Let the runs of hosts that are gone be taken by any; gives how many. One that is being driven stays, whatever
    its host's signs of life: its worker is alive."""
    now = clock.moment()
    alive = WorkerHost.objects.filter(seen_at__gt=now - gone_after()).values("pk")
    lost = Run.objects.filter(pin__isnull=False, lease_until__lte=now).exclude(pin__in=alive)
    # One that somebody changes at this moment is left to the next look, which waits for nobody.
    ids = list(lost.select_for_update(skip_locked=shared()).values_list("pk", flat=True)[:BATCH])
    return Run.objects.filter(pk__in=ids).update(pin=None)


# --- sessions left behind ---------------------------------------------------------------------------------


def leave(host: str, keeper: str, *, operation_id: str, token: int) -> None:
    """Note for `host` that a session there is to be ended, should it come back."""
    LeftSession.objects.create(
        host=host, keeper=keeper, operation_id=operation_id, token=token, left_at=clock.now()
    )


def left_here() -> list[LeftSession]:
    """The sessions of this host that are to be ended."""
    return list(LeftSession.objects.filter(host=here())[:BATCH])
