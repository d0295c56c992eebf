"""Rows found by what stands in their columns, for the few questions that are asked all the time.

Django writes the SQL of a query anew each time, and for one row that costs ten times as much as the database does.
Here it is written once. Everything else is a QuerySet.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Model

M = TypeVar("M", bound=Model)


def rows(model: type[M], *columns: str, order_by: str = "", **equal: Any) -> list[M]:
    """The rows whose columns have these values, none of them null; names are those of fields (`run_id`, not `run`).

    `columns` are what is read beside the key, everything if there are none. Raises OverflowError for a number that the
    database has no place for.
    """
    values = [
        model._meta.get_field(name).get_db_prep_value(value, connection)  # type: ignore[union-attr]  # all are columns
        for name, value in equal.items()
    ]
    return list(model._base_manager.raw(_sql(model, columns, tuple(equal), order_by), values))


def row(model: type[M], *columns: str, **equal: Any) -> M | None:
    """The one row, or None."""
    return next(iter(rows(model, *columns, **equal)), None)


@cache
def _sql(model: type[Model], columns: tuple[str, ...], equal: tuple[str, ...], order_by: str) -> str:
    """Every name comes from the model, and every database knows double quotes."""

    def column(name: str) -> str:
        return f'"{model._meta.get_field(name).column}"'  # type: ignore[union-attr]  # a field, no relation back

    key = model._meta.pk.name
    read = ", ".join(column(name) for name in (key, *columns)) if columns else "*"
    found = " AND ".join(f"{column(name)} = %s" for name in equal)
    order = f" ORDER BY {column(order_by)}" if order_by else ""
    return f'SELECT {read} FROM "{model._meta.db_table}" WHERE {found}{order}'  # noqa: S608
