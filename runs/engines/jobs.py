"""The engine beyond one machine: a wake is a job of procrastinate, written in the transaction of what woke the run.

Neither `lock` nor `queueing_lock`: a lock would let a dead worker's job block its run, and a queueing lock loses a wake
that commits while an older job of the same run is under way. Several jobs for one run do no harm, since the claim
decides who drives it (design section 6). A job is deleted when it is done.
"""

from __future__ import annotations

from typing import Final

from procrastinate import App
from procrastinate.contrib.django.django_connector import DjangoConnector

QUEUE: Final = "runs"
TASK: Final = "advance"


class Jobs:
    """Writes a job for every wake, on Django's own connection: a rollback takes the job along."""

    def __init__(self) -> None:
        self._app = App(connector=DjangoConnector())

    def enqueue(self, run_id: int) -> None:
        self._app.configure_task(TASK, queue=QUEUE).defer(run_id=run_id)
