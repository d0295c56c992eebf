"""The wakes of a process that drives nothing, where the engine is `in_process`."""

from __future__ import annotations

from django.db import transaction

from runs import notices


class Words:
    """Tells the workers on the same PostgreSQL. Whoever drives the run looks again at once; if nobody does, the sweep
    finds it, as it does on SQLite."""

    def enqueue(self, run_id: int) -> None:
        transaction.on_commit(lambda: notices.send(notices.WAKES, str(run_id)), robust=True)
