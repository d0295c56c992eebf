"""The tasks of `django_tasks_program`, in a module of their own because the worker finds them by its name."""

from __future__ import annotations

from django.db import connection, transaction
from django_tasks import task
from pace import ENDED, GOES_ON, LINE, WAITS, Relay

_relays: list[Relay] = []


def tell(relay: Relay) -> None:
    """Have the moments of runs noted there."""
    _relays.append(relay)


def _note(moment: str, run: str) -> None:
    for relay in _relays:
        relay.note(moment, run)


def _say(run: str, line: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO said (run, line) VALUES (%s, %s)", [run, line])


@task()
def ask(run: str) -> None:
    _say(run, "Which segment?")
    _note(WAITS, run)


@task()
def go_on(run: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT answer FROM decision WHERE run = %s", [run])
        (answer,) = cursor.fetchone()
    _note(GOES_ON, run)
    _say(run, f"Thank you. I go on with {answer}.")
    _note(LINE, run)
    _note(ENDED, run)
