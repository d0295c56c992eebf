"""The worker that the installation has chosen (`M3_ENGINE`)."""

from __future__ import annotations

from django.conf import settings

from runs.engines.in_process import InProcess
from runs.engines.worker import Worker
from runs.gate import Gate


def worker(gate: Gate, places: int | None = None) -> Worker:
    """A worker to be served on a loop, with so many `places` for runs; None stands for what the settings say."""
    if settings.M3.engine == "procrastinate":
        from runs.engines.procrastinate import ProcrastinateWorker  # its package is not installed everywhere

        return ProcrastinateWorker(gate, places)
    return InProcess(gate, places)
