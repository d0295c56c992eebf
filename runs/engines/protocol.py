from __future__ import annotations

import datetime as dt
from typing import Protocol


class Engine(Protocol):
    """Gets `advance(run_id)` called at least once for every committed wake."""

    def enqueue(self, run_id: int) -> None:
        """Called inside the transaction that made the run ready, from any thread; atomic with it."""

    def wake_at(self, run_id: int, when: dt.datetime) -> None:
        """Hint that the run sleeps until `when`; the sweep is the slow way."""
