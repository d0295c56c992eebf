"""A statement whose SQL is known, carried out on the calling thread's connection with as little in between as may be.

Django's own way to the driver wraps cursors, rewrites placeholders and asks for the thread's connection at every step;
for a statement that is carried out thousands of times that costs more than the statement.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models import Expression, Field

_TEXT = (models.CharField, models.TextField)
_NUMBER = (models.IntegerField, models.BigIntegerField, models.AutoField, models.BigAutoField)
_STORED_AS_IT_IS: Final[dict[type, type]] = {
    **dict.fromkeys(_TEXT, str),
    **dict.fromkeys(_NUMBER, int),
    models.BooleanField: bool,
}
"""Values of exactly this type need no preparation. Not for subclasses of these fields, which may do otherwise."""

SENT_AT_ONCE: Final = 8000
"""Bytes that libpq collects before it sends any of them, a little less than it really does."""

_SIZE_OF_ONE: Final = 80
_SIZE_OF_VALUE: Final = 6
_SIZE_OF_NUMBER: Final = 36
"""Bytes that a statement takes beside its values, that a value takes beside what it says, and what a number or a time
says."""

_NAMES: Final = re.compile(r'"(\w+)"')


class Param(Expression):
    """A value that is given when the statement is carried out; `field` is what it is compared with or stored in."""

    def __init__(self, name: str, field: Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name
        self._plain = _STORED_AS_IT_IS.get(type(_target(field)))
        self._refers, self._is_moment = field.is_relation, isinstance(field, models.DateTimeField)

    @classmethod
    def of(cls, model: type[models.Model], field: str, name: str | None = None) -> Param:
        """What a field of `model` is compared with or set to, by the field's own name if it gets no other."""
        stored: Any = model._meta.get_field(field)
        return cls(name or field, stored)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]

    def prepared(self, value: Any, connection: Any) -> Any:
        """As the driver takes it."""
        if value is None or (type(value) is self._plain and not (self._refers and value == "")):
            return value
        if self._is_moment and type(value) is dt.datetime and value.tzinfo is not None:
            return connection.ops.adapt_datetimefield_value(value)
        plain = value.value if isinstance(value, Enum) else value  # a driver may store a member by its name
        return self.output_field.get_db_prep_save(plain, connection)


def _target(field: Any) -> Any:
    """The field whose values this one takes: of a foreign key what it refers to."""
    while field.is_relation:
        field = field.target_field
    return field


class Own:
    """A wrapper of ours around what Django carries out, which need not see the statements of this module."""


class Statement:
    """`sql` with placeholders, and what stands for them: `Param`s, and values that never change."""

    def __init__(self, sql: str, params: Sequence[Any]) -> None:
        self.at: Any = current()
        """The connection that it is made for."""
        self.params = params
        self.names = frozenset(_NAMES.findall(sql))
        """Every quoted name in it, so of every table that it reads or changes."""
        # For SQLite as its driver wants it; the other form is for whoever looks on.
        on_postgres = self.at.vendor == "postgresql"
        self.sql, self.native = (sql, sql if on_postgres else sql.replace("%s", "?").replace("%%", "%"))

    def given(self, values: Mapping[str, Any], *, rows: bool = False) -> Given:
        """With the values of its parameters, and whether it gives rows."""
        given = [
            param.prepared(values[param.name], self.at) if isinstance(param, Param) else param
            for param in self.params
        ]
        return Given(self, given, rows)


@dataclass(frozen=True, eq=False)
class Given:
    """A statement with the values that it is to be carried out with."""

    statement: Statement
    values: Sequence[Any]
    rows: bool


Result = tuple[Sequence[Any], int]
"""The rows of a statement that gives any, and how many it changed."""


def carry_out(given: Sequence[Given]) -> list[Result]:
    """Carry out one after the other, on PostgreSQL in one round trip if it is in a transaction.

    Raises as Django's cursors do.
    """
    if not given:
        return []
    at = given[0].statement.at
    at.validate_no_broken_transaction()
    at.ensure_connection()
    if at.queries_logged or any(not isinstance(wrapper, Own) for wrapper in at.execute_wrappers):
        return [_observed(at, one) for one in given]
    with at.wrap_database_errors:
        if at.vendor == "postgresql":
            return _on_postgres(at, given)
        return [_plainly(at.connection.cursor(), one) for one in given]


def _on_postgres(at: Any, given: Sequence[Given]) -> list[Result]:
    if not at.in_atomic_block:  # each is a transaction by itself
        return [_plainly(_binding(at), one) for one in given]
    return [result for batch in fitting(given) for result in _at_once(at, batch)]


def fitting(given: Iterable[Given]) -> Iterator[list[Given]]:
    """Statements in their order, as many together as libpq sends at once, and at least one.

    Of more than that it sends the beginning before the end is made; see `runs.pipeline`. The SQL itself is not counted:
    after its first uses the server knows it.
    """
    batch: list[Given] = []
    size = 0
    for one in given:
        its = _SIZE_OF_ONE + _SIZE_OF_VALUE * len(one.values) + sum(map(_size, one.values))
        if batch and size + its > SENT_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += its
    yield batch


def _size(value: Any) -> int:
    """How many bytes a value takes at most in a message; more than are sent at once for what is neither text nor a
    number nor a time."""
    if value is None:
        return 0
    if isinstance(value, str):
        return len(value) * (1 if value.isascii() else 4)
    if isinstance(value, (int, float, dt.datetime, dt.timedelta)):
        return _SIZE_OF_NUMBER
    return SENT_AT_ONCE


def _at_once(at: Any, given: Sequence[Given]) -> list[Result]:
    if len(given) == 1:
        return [_plainly(_binding(at), given[0])]
    # Not at the top: psycopg is not installed everywhere.
    from runs.pipeline import whole

    cursors = [_binding(at) for _ in given]
    with whole(at.connection):
        for cursor, one in zip(cursors, given, strict=True):
            cursor.execute(one.statement.native, one.values)
    return [_result(cursor, one) for cursor, one in zip(cursors, given, strict=True)]


def _plainly(cursor: Any, one: Given) -> Result:
    cursor.execute(one.statement.native, one.values)
    return _result(cursor, one)


def _result(cursor: Any, one: Given) -> Result:
    with closing(cursor):
        return cursor.fetchall() if one.rows else (), cursor.rowcount


def _observed(at: Any, one: Given) -> Result:
    """Past Django's wrappers, for whoever counts statements, or logs them: then the values stand in the SQL."""
    with at.cursor() as cursor:
        if at.vendor == "postgresql" and not at.queries_logged:
            cursor.cursor.close()
            cursor.cursor = _binding(at)
        cursor.execute(one.statement.sql, one.values)
        return cursor.fetchall() if one.rows else (), cursor.rowcount


def _binding(at: Any) -> Any:
    """A cursor whose statements the server parses once and whose plans it may keep, if the connection allows it
    (`prepare_threshold`). Django's own cursors write the values into the SQL."""
    # Not at the top: psycopg is not installed everywhere.
    from django.db.backends.postgresql.base import ServerBindingCursor

    return ServerBindingCursor(at.connection)  # type: ignore[call-arg]


def current() -> Any:
    """The calling thread's connection, looked for once: Django's `connection` looks for it at every use."""
    return connections[DEFAULT_DB_ALIAS]
