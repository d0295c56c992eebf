"""What time itself does: sleeps that end, deadlines that pass, wake-ups that a dead process left behind."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from runs import lease, round_rows, rounds
from runs.models import Round, Run

BATCH = 500


def sweep() -> list[int]:
    """Wake sleepers, expire overdue rounds, and return the ids of runs that are due and free.

    The slow way behind every hint: whatever was missed is found here.
    """
    now = timezone.now()
    for run_id in Run.objects.sleepers(now).values_list("pk", flat=True)[:BATCH]:
        with transaction.atomic():
            lease.wake(run_id)
    for round_id in Round.objects.overdue(now).values_list("pk", flat=True)[:BATCH]:
        with transaction.atomic():
            rounds.expire(round_rows.lock(round_id))
    return list(Run.objects.due(now).values_list("pk", flat=True)[:BATCH])
