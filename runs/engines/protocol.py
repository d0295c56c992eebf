from __future__ import annotations

from typing import Protocol


class Engine(Protocol):
    """Gets `advance(run_id)` called at least once for every committed wake."""

    def enqueue(self, run_id: int) -> None:
        """Called inside the transaction that made the run ready, from any thread; atomic with it."""
