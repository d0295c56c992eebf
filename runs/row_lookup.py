"""Rows found by what stands in their columns, for the few questions that are asked all the time (`runs.prepared`)."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from runs.prepared import Param, Rows

M = TypeVar("M", bound=Model)


def rows(model: type[M], *columns: str, order_by: str = "", **equal: Any) -> list[M]:
    """The rows whose columns have these values, none of them null; names are those of fields.

    `columns` are what is read beside the key, everything if there are none. Raises ValueError for what is no value of a
    column, and OverflowError or DataError for one that the database has no place for.
    """
    found: list[M] = _asking(model, columns, tuple(equal), order_by)(**equal)
    return found


def row(model: type[M], *columns: str, **equal: Any) -> M | None:
    """The one row, or None."""
    return next(iter(rows(model, *columns, **equal)), None)


@cache
def _asking(model: type[Model], columns: tuple[str, ...], equal: tuple[str, ...], order_by: str) -> Rows[Any]:
    def build() -> QuerySet[Any]:
        found = model._base_manager.filter(**{name: Param.of(model, name) for name in equal})
        chosen = found.only(*columns) if columns else found
        return chosen.order_by(order_by) if order_by else chosen.order_by()

    return Rows(build)
