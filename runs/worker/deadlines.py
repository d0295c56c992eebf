"""What time itself does: sleeps that end, questions that go on, deadlines that pass, and wake-ups that a dead process
left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.db import IntegrityError, transaction

from runs import clock, hosts, lease, round_rows, rounds
from runs.errors import M3Error
from runs.models import Round, Run

log = logging.getLogger(__name__)

BATCH = 500


def sweep() -> list[int]:
    """Wake sleepers, let questions go on, expire overdue rounds, and return the ids of runs that are due, free and
    not pinned elsewhere.

    The slow way behind every hint: whatever was missed is found here.
    """
    now = clock.now()
    sleepers = Run.objects.sleepers(now).values_list("pk", flat=True)[:BATCH]
    overdue = Round.objects.overdue(now).values_list("run", "pk")[:BATCH]
    going_on = Round.objects.going_on(now).values_list("run", "pk")[:BATCH]
    changes: list[tuple[int, str, object, Callable[[], object]]] = [
        *((run_id, "a sleeping run", run_id, partial(lease.wake, run_id)) for run_id in sleepers),
        *((run_id, "a question", key, partial(_go_on, key)) for run_id, key in going_on),
        *((run_id, "an overdue pause", key, partial(_expire, key)) for run_id, key in overdue),
    ]
    # Every run that is changed stays locked to the end of the transaction: younger ones first, as everywhere
    # (`control.lock_family`), so that nobody who waits for one of these holds another.
    for _, what, key, change in sorted(changes, key=lambda each: -each[0]):
        _alone(what, key, change)
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


def _alone(what: str, key: object, change: Callable[[], object]) -> None:
    """One row that cannot be changed must not keep the others waiting, nor end the process at every start."""
    try:
        with transaction.atomic():
            change()
    except (M3Error, ValueError, IntegrityError):
        log.exception("%s (%s) could not be moved on", what, key)
