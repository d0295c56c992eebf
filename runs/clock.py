"""What time it is for leases, sleeps and deadlines: the one place that decides whose clock counts.

On PostgreSQL it is the server's, the only one that all processes share; a machine whose clock is an hour off neither
takes nor loses a run. On SQLite it is this machine's, which is the only one there is. Times that are only shown or kept
as history come from the process itself.
"""

from __future__ import annotations

import datetime as dt
import time

from django.db.models import DateTimeField, Func
from django.utils import timezone

from runs import database, write_behind
from runs.prepared import Asked, cached, together
from runs.statements import Result, Statement


class _ServerTime(Func):
    """The server's time at the start of the statement. Not that of the transaction, which may have waited long."""

    template = "STATEMENT_TIMESTAMP()"
    output_field = DateTimeField()


def is_shared() -> bool:
    """Whether the clock that counts is a database server's."""
    return database.current().on_server


def moment() -> dt.datetime | Func:
    """The present, to be compared or stored within a statement; spans of time can be added to it."""
    return _ServerTime() if is_shared() else timezone.now()


def now() -> dt.datetime:
    """The present as a value. Asks the database server where there is one, so never on an event loop.

    A transaction whose writes wait asks once; from then on its clock goes by this process's.
    """
    if not is_shared():
        return timezone.now()
    waiting = write_behind.active()
    if waiting is None or waiting.moment is None:
        moment: dt.datetime
        (moment,) = together(*questions())
        return moment
    then, at = waiting.moment
    return then + dt.timedelta(seconds=time.monotonic() - at)


def questions() -> list[Asked[dt.datetime]]:
    """What `now` has to ask, for whoever asks something else anyhow and will want to know it."""
    if not is_shared():
        return []
    statement = cached("clock", lambda: Statement("SELECT STATEMENT_TIMESTAMP()", []))
    return [Asked(statement.given({}, rows=True), _read)]


def _read(result: Result) -> dt.datetime:
    ((value,),), _ = result
    moment: dt.datetime = value.astimezone(dt.UTC)
    if waiting := write_behind.active():
        waiting.moment = moment, time.monotonic()
    return moment
