"""Rows found by what stands in their columns, for the few questions that are asked all the time.

Django writes the SQL of a query anew each time, and for one row that costs ten times as much as the database does.
Here it is written once. Everything else is a QuerySet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model

M = TypeVar("M", bound=Model)


def rows(model: type[M], *columns: str, order_by: str = "", **equal: Any) -> list[M]:
    """The rows whose columns have these values, none of them null; names are those of fields (`run_id`, not `run`).

    `columns` are what is read beside the key, everything if there are none. Raises OverflowError for a number that the
    database has no place for.
    """
    connection = connections[DEFAULT_DB_ALIAS]  # once: Django's own `connection` looks for it at every use
    query = _query(model, columns, tuple(equal), order_by, connection.vendor)
    values = [
        field.get_db_prep_value(value, connection)
        for field, value in zip(query.asked, equal.values(), strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(query.sql, values)
        found = cursor.fetchall()
    return [model.from_db(connection.alias, query.names, query.read(row, connection)) for row in found]


def row(model: type[M], *columns: str, **equal: Any) -> M | None:
    """The one row, or None."""
    return next(iter(rows(model, *columns, **equal)), None)


@dataclass(frozen=True, kw_only=True)
class _Query:
    sql: str
    asked: tuple[Field[Any, Any], ...]
    names: tuple[str, ...]
    converters: tuple[tuple[int, Any, Any], ...]
    """Which value of a row becomes something else, by what, and the column as the framework's converters know it."""

    def read(self, values: Sequence[Any], connection: BaseDatabaseWrapper) -> list[Any]:
        read = list(values)
        for index, convert, column in self.converters:
            read[index] = convert(read[index], column, connection)
        return read


@cache
def _query(
    model: type[Model], columns: tuple[str, ...], equal: tuple[str, ...], order_by: str, _vendor: str
) -> _Query:
    """Every name comes from the model, and every database knows double quotes."""
    connection = connections[DEFAULT_DB_ALIAS]
    asked = tuple(_field(model, name) for name in equal)
    wanted = {_field(model, name) for name in columns} | {model._meta.pk}
    fields = [field for field in model._meta.concrete_fields if not columns or field in wanted]
    known = [field.get_col(model._meta.db_table) for field in fields]
    compiler: Any = model._base_manager.all().query.get_compiler(connection=connection)
    read = ", ".join(field.select_format(compiler, f'"{field.column}"', ())[0] for field in fields)
    where = " AND ".join(f'"{field.column}" = %s' for field in asked)
    order = f' ORDER BY "{_field(model, order_by).column}"' if order_by else ""
    return _Query(
        sql=f'SELECT {read} FROM "{model._meta.db_table}" WHERE {where}{order}',  # noqa: S608
        asked=asked,
        names=tuple(field.attname for field in fields),
        converters=tuple(
            (index, convert, column)
            for index, column in enumerate(known)
            for convert in (
                *connection.ops.get_db_converters(column),
                *column.get_db_converters(connection),
            )
        ),
    )


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    return model._meta.get_field(name)  # type: ignore[return-value]  # a column; else there is no attribute to read
