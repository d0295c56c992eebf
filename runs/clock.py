"""What time it is for leases, sleeps and deadlines: the one place that decides whose clock counts.

On PostgreSQL it is the server's, the only one that all processes share; a machine whose clock is an hour off neither
takes nor loses a run. On SQLite it is this machine's, which is the only one there is. Times that are only shown or kept
as history come from the process itself.
"""

from __future__ import annotations

import datetime as dt

from django.db import connection
from django.db.models import DateTimeField, Func
from django.utils import timezone


class _ServerTime(Func):
    """The server's time at the start of the statement. Not that of the transaction, which may have waited long."""

    template = "STATEMENT_TIMESTAMP()"
    output_field = DateTimeField()


def is_shared() -> bool:
    """Whether the clock that counts is a database server's."""
    return connection.vendor == "postgresql"


def moment() -> dt.datetime | Func:
    """The present, to be compared or stored within a statement; spans of time can be added to it."""
    return _ServerTime() if is_shared() else timezone.now()


def now() -> dt.datetime:
    """The present as a value. Asks the database server where there is one, so never on an event loop."""
    if not is_shared():
        return timezone.now()
    with connection.cursor() as cursor:
        cursor.execute("SELECT STATEMENT_TIMESTAMP()")
        (value,) = cursor.fetchone()
    return value.astimezone(dt.UTC)  # type: ignore[no-any-return]
