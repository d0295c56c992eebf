"""What wakes a worker. The run row is the truth; an engine only carries wake-ups (design section 6)."""

from __future__ import annotations

from runs.engines.protocol import Engine

_current: Engine | None = None


def use(engine: Engine | None) -> None:
    """Make `engine` the one that this process enqueues to; None means that a sweep elsewhere finds the work."""
    global _current
    _current = engine


def enqueue(run_id: int) -> None:
    """Ask that `advance(run_id)` happens after the current transaction commits; a rollback asks for nothing."""
    if _current is not None:
        _current.enqueue(run_id)
