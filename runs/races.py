"""Transactions that failed because another one was at work on the same rows: nothing is wrong, and nothing was stored.

PostgreSQL ends one of two that wait for each other, and lets only one of two that make the same row, or of which one
removes what the other refers to. Whoever lost has to begin anew and then sees what the winner did. On SQLite writers
take turns (design section 6), and one that waits too long for its turn is told that the file is locked.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from django.db import InterfaceError, OperationalError

_LOST: Final = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock detected
        "23503",  # foreign key violation: what a row refers to was removed meanwhile
        "23505",  # unique violation: the same row was made meanwhile
        "25P03",  # idle in transaction for too long: this process stood still, and the server let nobody wait for it
    }
)

AWAY: Final = (OperationalError, InterfaceError)
"""What may say that the database is away; `away` knows whether it does."""


def lost(error: BaseException) -> bool:
    """Whether a transaction failed in a way that beginning it anew may mend."""
    return getattr(error.__cause__, "sqlstate", None) in _LOST


def away(error: BaseException) -> bool:
    """Whether the database server could not be reached, or was lost on the way. One that refuses has words for it."""
    if not isinstance(error, AWAY):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    postgres = type(error.__cause__).__module__.startswith("psycopg")
    return postgres and (state is None or state.startswith(("08", "57P")))


def refused_for_now(error: BaseException) -> bool:
    """Whether a request failed in a way that is over in a moment: `lost`, or a turn on SQLite that did not come."""
    cause = error.__cause__
    busy = isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )
    return busy or lost(error)
