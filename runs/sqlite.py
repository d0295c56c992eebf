"""How this product opens a SQLite file. Plain module: the settings read it before Django is there."""

from __future__ import annotations

from typing import Any

BUSY_TIMEOUT_MS = 20_000
"""How long a statement waits for another process's write, in milliseconds."""


def connection_options(busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> dict[str, Any]:
    """Options of a connection to a file that several threads or processes write to.

    IMMEDIATE with WAL is the only setting under which two writers never fail with "database is locked"; FULL,
    because a decision that was acknowledged must survive a power cut.
    """
    return {
        "transaction_mode": "IMMEDIATE",
        "timeout": busy_timeout_ms / 1000,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
