"""What time itself does: sleeps that end, deadlines that pass, wake-ups that a dead process left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.db import IntegrityError, transaction

from runs import clock, lease, round_rows, rounds
from runs.errors import M3Error
from runs.models import Round, Run

log = logging.getLogger(__name__)

BATCH = 500


def sweep() -> list[int]:
    """Wake sleepers, expire overdue rounds, and return the ids of runs that are due and free.

    The slow way behind every hint: whatever was missed is found here.
    """
    now = clock.now()
    sleepers = Run.objects.sleepers(now).values_list("pk", flat=True)[:BATCH]
    overdue = Round.objects.overdue(now).values_list("run", "pk")[:BATCH]
    changes: list[tuple[int, str, object, Callable[[], object]]] = [
        *((run_id, "a sleeping run", run_id, partial(lease.wake, run_id)) for run_id in sleepers),
        *((run_id, "an overdue pause", key, partial(_expire, key)) for run_id, key in overdue),
    ]
    # Every run that is changed stays locked to the end of the transaction: younger ones first, as everywhere
    # (`control.lock_family`), so that nobody who waits for one of these holds another.
    for _, what, key, change in sorted(changes, key=lambda each: -each[0]):
        _alone(what, key, change)
    return list(Run.objects.due(now).values_list("pk", flat=True)[:BATCH])


def _expire(round_id: str) -> None:
    rounds.expire(round_rows.lock(round_id))


def _alone(what: str, key: object, change: Callable[[], object]) -> None:
    """One row that cannot be changed must not keep the others waiting, nor end the process at every start."""
    try:
        with transaction.atomic():
            change()
    except (M3Error, ValueError, IntegrityError):
        log.exception("%s (%s) could not be moved on", what, key)
