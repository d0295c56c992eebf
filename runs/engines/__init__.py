"""What wakes a worker. The run row is the truth; an engine only carries wake-ups (design section 6)."""

from __future__ import annotations

from runs import database
from runs.engines.protocol import Engine


def use(engine: Engine | None) -> None:
    """Make `engine` the one that wakes of the current database go to; None leaves them to a sweep elsewhere."""
    database.current().engine = engine


def enqueue(run_id: int) -> None:
    """Ask that `advance(run_id)` happens after the current transaction commits; a rollback asks for nothing."""
    engine = database.current().engine
    if engine is not None:
        engine.enqueue(run_id)
