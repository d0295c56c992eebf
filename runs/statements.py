"""A statement whose SQL is known, carried out on the calling thread's connection with as little in between as may be.

Django's own way to the driver wraps cursors, rewrites placeholders and asks for the thread's connection at every step;
for a statement that is carried out thousands of times that costs more than the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Param(Expression):
    """A value that is given when the statement is carried out; `field` is what it is compared with or stored in."""

    def __init__(self, name: str, field: Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name
        self._plain = _STORED_AS_IT_IS.get(type(_target(field)))

    @classmethod
    def of(cls, model: type[models.Model], field: str, name: str | None = None) -> Param:
        """What a field of `model` is compared with or set to, by the field's own name if it gets no other."""
        stored: Any = model._meta.get_field(field)
        return cls(name or field, stored)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]

    def prepared(self, value: Any, connection: Any) -> Any:
        """As the driver takes it."""
        if type(value) is self._plain and value != "":
            return value
        plain = value.value if isinstance(value, Enum) else value  # a driver may store a member by its name
        return self.output_field.get_db_prep_save(plain, connection)


def _target(field: Any) -> Any:
    """The field whose values this one takes: of a foreign key what it refers to."""
    while field.is_relation:
        field = field.target_field
    return field


class Statement:
    """`sql` with placeholders, and what stands for them: `Param`s, and values that never change."""

    def __init__(self, sql: str, params: Sequence[Any]) -> None:
        self._at: Any = current()
        self.params = params
        self._on_postgres = self._at.vendor == "postgresql"
        # For SQLite as its driver wants it; the other form is for whoever looks on.
        self._sql, self._native = (
            sql,
            (sql if self._on_postgres else sql.replace("%s", "?").replace("%%", "%")),
        )

    def __call__(self, values: Mapping[str, Any], *, rows: bool = False) -> tuple[Sequence[Any], int]:
        """Carry it out. Gives its rows (with `rows`), and how many it changed. Raises as Django's cursors do."""
        at = self._at
        given = [
            param.prepared(values[param.name], at) if isinstance(param, Param) else param
            for param in self.params
        ]
        at.validate_no_broken_transaction()
        at.ensure_connection()
        if at.queries_logged or at.execute_wrappers:
            return self._observed(given, rows)
        with at.wrap_database_errors:
            cursor = self._cursor()
            try:
                cursor.execute(self._native, given)
                return cursor.fetchall() if rows else (), cursor.rowcount
            finally:
                cursor.close()

    def _observed(self, given: Sequence[Any], rows: bool) -> tuple[Sequence[Any], int]:
        """Past Django's wrappers, for whoever counts statements, or logs them: then the values stand in the SQL."""
        with self._at.cursor() as cursor:
            if self._on_postgres and not self._at.queries_logged:
                cursor.cursor.close()
                cursor.cursor = self._cursor()
            cursor.execute(self._sql, given)
            return cursor.fetchall() if rows else (), cursor.rowcount

    def _cursor(self) -> Any:
        """On PostgreSQL one whose statements the server parses once and whose plans it may keep, if the connection
        allows it (`prepare_threshold`). Django's own cursors write the values into the SQL."""
        if not self._on_postgres:
            return self._at.connection.cursor()
        # Not at the top: psycopg is not installed everywhere.
        from django.db.backends.postgresql.base import ServerBindingCursor

        return ServerBindingCursor(self._at.connection)  # type: ignore[call-arg]


def current() -> Any:
    """The calling thread's connection, looked for once: Django's `connection` looks for it at every use."""
    return connections[DEFAULT_DB_ALIAS]
