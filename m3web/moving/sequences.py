"""The counters behind ids. An id that was given away once is not given away again, also if its row is gone: the ledger
of an account tells of runs by their numbers."""

from __future__ import annotations

from typing import Final

from django.db import connection
from django.db.models import AutoField, Model

from m3web.moving.tables import labels, model_of


def highest() -> dict[str, int]:
    """The highest id given away so far, by table; of this installation, not of one account."""
    return {label: _highest(model) for label in labels() if _is_counted(model := model_of(label))}


ROOM: Final = 1000
"""Ids that are left free at least, see `advance`."""


def advance(past: dict[str, int]) -> None:
    """Give only higher ids from here on, and leave room for those that the other installation gives away after this
    export, a tenth as many as it ever did: another account of it may follow, with rows from that time."""
    for label, number in past.items():
        _advance(model_of(label), number + max(ROOM, number // 10))


def _is_counted(model: type[Model]) -> bool:
    return isinstance(model._meta.pk, AutoField)


def _highest(model: type[Model]) -> int:
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SELECT last_value FROM {_sequence(model)} WHERE is_called")  # noqa: S608 - its own name
        else:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        found = cursor.fetchone()
    return int(found[0]) if found else 0


def _advance(model: type[Model], number: int) -> None:
    number = max(number, _highest(model))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT setval(%s, %s)", [_sequence(model), number])
            return
        table = model._meta.db_table
        cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [number, table])
        if not cursor.rowcount:
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [table, number])


def _sequence(model: type[Model]) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [model._meta.db_table])
        (name,) = cursor.fetchone()
    return str(name)
