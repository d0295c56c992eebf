"""What time itself does: sleeps that end, questions that go on, deadlines that pass, and wake-ups that a dead process
left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from django.db import IntegrityError, transaction

from runs import clock, hosts, lease, round_rows, rounds
from runs.errors import M3Error
from runs.models import Round, Run

log = logging.getLogger(__name__)

BATCH = 500

K = TypeVar("K")


def sweep() -> list[int]:
    """Wake sleepers, let questions go on, expire overdue rounds, and return the ids of runs that are due, free and
    not pinned elsewhere.

    The slow way behind every hint: whatever was missed is found here. Each change is a transaction of its own, so call
    this outside of any: whoever ended several runs in one would hold the account's ledger and wait for a run, whose
    holder may want the ledger.
    """
    now = clock.now()
    sleepers = Run.objects.sleepers(now).values_list("pk", flat=True)[:BATCH]
    overdue = Round.objects.overdue(now).values_list("pk", flat=True)[:BATCH]
    going_on = Round.objects.going_on(now).values_list("pk", flat=True)[:BATCH]
    for run_id in sleepers:
        _alone("a sleeping run", run_id, lease.wake)
    for round_id in going_on:
        _alone("a question", round_id, _go_on)
    for round_id in overdue:
        _alone("an overdue pause", round_id, _expire)
    return list(Run.objects.due(now).filter(hosts.within_reach()).values_list("pk", flat=True)[:BATCH])


def _go_on(round_id: str) -> None:
    """Somebody may have added time or answered since the look, so the locked row counts. A deadline that came first
    has the word."""
    round_ = round_rows.lock(round_id)
    due, deadline = round_.continue_at, round_.deadline
    if due is not None and due <= clock.now() and (deadline is None or due <= deadline):
        rounds.go_on(round_)


def _expire(round_id: str) -> None:
    rounds.expire(round_rows.lock(round_id))


def _alone(what: str, key: K, change: Callable[[K], object]) -> None:
    """One row that cannot be changed must not keep the others waiting, nor end the process at every start."""
    try:
        with transaction.atomic():
            change(key)
    except (M3Error, ValueError, IntegrityError):
        log.exception("%s (%s) could not be moved on", what, key)
