"""What comes before a process of the installation serves: the database is brought up to date, once."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import Error, connection

from m3web import belonging, demo

PREPARING: Final = 0x6D33_7765_62
"""The number under which processes queue in PostgreSQL to bring it up to date."""


def bring_up_to_date(*, people: bool) -> None:
    """Make the tables of this version. With `people`, open or close the demo as well.

    Raises CommandError, changing nothing, if the database belongs to other secrets.
    """
    with one_at_a_time():
        belonging.refuse_others()
        call_command("migrate", verbosity=0, interactive=False)
        belonging.leave_proof()
        if people:
            if settings.M3.demo:
                demo.seed()
            else:
                demo.close_logins()
    connection.close()  # this thread serves from now on; the worker's and the pages' threads have their own


def refuse_on_sqlite(what: str) -> None:
    """`what` is one process of several, and a SQLite file belongs to one. Raises CommandError."""
    if connection.vendor != "postgresql":
        raise CommandError(
            f"{what} is for installations on PostgreSQL, where several processes share the work. On SQLite one process "
            "does everything: start `manage.py up`, or name a PostgreSQL in DATABASE_URL."
        )


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Processes that start at once on one PostgreSQL prepare it one after the other, because `migrate` may not run
    twice at a time. On SQLite the lock of the file has refused the second one already."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARING])
        # A migration may think for longer between two statements than a worker may.
        cursor.execute("SET idle_in_transaction_session_timeout = 0")
        try:
            yield
        finally:
            # Not left to the end of the connection: closing it only gives it back to the pool. One that broke has
            # given up its lock already.
            with contextlib.suppress(Error):
                cursor.execute("RESET idle_in_transaction_session_timeout")
                cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARING])


STOPPED_EARLY = "Stopped before it was up."
"""What a command says that was told to stop while it prepared."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """A signal to stop ends what is inside, also where its exception is swallowed on the way (by a finaliser, say).

    Afterwards the handlers from before are back: Twisted puts its own in place of Python's only. Raises CommandError
    if there was such a signal.
    """
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    def swallowed(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    sys.unraisablehook = swallowed
    try:
        yield
        check()
    except KeyboardInterrupt:
        raise CommandError(STOPPED_EARLY, returncode=130) from None
    finally:
        sys.unraisablehook = sys.__unraisablehook__
        for number, handler in before.items():
            signal.signal(number, handler)
