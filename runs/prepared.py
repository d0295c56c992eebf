"""Statements whose SQL is made once per connection, for the few that every run needs again and again.

Django makes the SQL of a queryset anew whenever it is evaluated, which takes several times as long as SQLite or
PostgreSQL need to carry it out; it was most of what a run cost. What a statement says stays an ordinary queryset; only
the values that change are named, as `Param`s. Rows become the same model instances, through the same converters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from django.db.models import AutoField, Func, IntegerField, Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql import UpdateQuery
from django.db.models.sql.compiler import SQLCompiler

from runs.statements import Param, Statement, current

__all__ = ["Number", "Param", "Rows", "Update", "UpdateOne", "insert", "save"]

T = TypeVar("T")
M = TypeVar("M", bound=Model)

_CACHE = "m3_prepared"
"""The attribute of a connection that holds what was made for it, and that goes with it."""


class Number(Func):
    """How many rows there are, as the one value of one row (Django's own `Count` would group by a column first)."""

    template = "COUNT(*)"
    output_field = IntegerField()


class Rows(Generic[T]):
    """A SELECT: calling it with the values of its parameters gives model instances, or tuples of a `values_list`."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build

    def __call__(self, **values: Any) -> list[T]:
        query = _cached(self, self._make)
        rows, _ = query.statement(values, rows=True)
        return query.results(rows) if rows else []

    def first(self, **values: Any) -> T | None:
        """The first row; None if there is none."""
        return next(iter(self(**values)), None)

    def _make(self) -> _Query:
        return _Query(self._build())


class Update:
    """An UPDATE: `build` gives the rows and the new values; calling it gives how many rows it changed."""

    def __init__(self, build: Callable[[], tuple[QuerySet[Any, Any], Mapping[str, Any]]]) -> None:
        self._build = build

    def __call__(self, **values: Any) -> int:
        _, changed = _cached(self, self._make)(values)
        return changed

    def _make(self, ending: str = "") -> Statement:
        rows, new = self._build()
        query: Any = rows.query.chain(UpdateQuery)
        query.add_update_values(new)
        sql, params = query.get_compiler(connection=current()).as_sql()
        return _fixed(sql + ending, params)


class UpdateOne(Update):
    """An UPDATE of at most one row; calling `after` gives what stands in the row's `columns` then, whole numbers."""

    def __init__(
        self, build: Callable[[], tuple[QuerySet[Any, Any], Mapping[str, Any]]], columns: Sequence[str]
    ) -> None:
        super().__init__(build)
        self._columns = columns

    def after(self, **values: Any) -> tuple[int, ...] | None:
        """None if it changed no row."""
        rows, _ = _cached((self, "after"), self._returning)(values, rows=True)
        return tuple(rows[0]) if rows else None

    def _returning(self) -> Statement:
        return self._make(f" RETURNING {', '.join(current().ops.quote_name(name) for name in self._columns)}")


def save(row: Model, fields: Sequence[str]) -> None:
    """`row.save(update_fields=fields)` for a row that exists; `auto_now` fields among them are set.

    Raises the model's DoesNotExist if it exists no longer.
    """
    model = type(row)
    known, update = _cached((model, tuple(fields)), lambda: _saving(model, fields))
    values = {field.attname: field.pre_save(row, add=False) for field in known}
    if not update(pk=row.pk, **values):
        raise model.DoesNotExist(f"{row} exists no longer.")  # type: ignore[attr-defined]


def insert(row: Model) -> None:
    """`row.save(force_insert=True)`; a key that the database makes is set."""
    model = type(row)
    statement, fields, made = _cached((model, "insert"), lambda: _inserting(model))
    values = {field.attname: field.pre_save(row, add=True) for field in fields}
    rows, _ = statement(values, rows=made is not None)
    if made is not None:
        ((key,),) = rows
        setattr(row, made, key)
    row._state.adding, row._state.db = False, current().alias


def _inserting(model: type[Model]) -> tuple[Statement, Sequence[Any], str | None]:
    """The statement, the fields whose values it takes, and the name of the key that the database makes, if it does."""
    key: Any = model._meta.pk
    made = key.attname if isinstance(key, AutoField) else None
    fields: list[Any] = [field for field in model._meta.concrete_fields if field.attname != made]
    quote = current().ops.quote_name
    columns, places = ", ".join(quote(field.column) for field in fields), ", ".join(["%s"] * len(fields))
    returning = f" RETURNING {quote(key.column)}" if made else ""
    sql = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES ({places}){returning}"  # noqa: S608
    return Statement(sql, [Param(field.attname, field) for field in fields]), fields, made


def _saving(model: type[Model], names: Sequence[str]) -> tuple[Sequence[Any], Update]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    new = {field.name: Param(field.attname, field) for field in fields}
    return fields, Update(lambda: (model._default_manager.filter(pk=Param("pk", model._meta.pk)), new))


class _Query:
    """A compiled SELECT and what its rows are made into."""

    def __init__(self, queryset: QuerySet[Any, Any]) -> None:
        at = current()
        compiler: SQLCompiler = queryset.query.get_compiler(connection=at)
        self.statement = _fixed(*compiler.as_sql())
        self._compiler, self._alias = compiler, at.alias
        self._converters = compiler.get_converters([column[0] for column in compiler.select])
        self._of_models = issubclass(queryset._iterable_class, ModelIterable)
        if self._of_models:
            info: Any = compiler.klass_info
            self._model, own = info["model"], info["select_fields"]
            self._own = slice(own[0], own[-1] + 1)
            self._names = [column[0].target.attname for column in compiler.select[self._own]]
            populators: Any = get_related_populators  # whose types are those of a later Django
            self._related = populators(info, compiler.select, at.alias)

    def results(self, rows: Sequence[Any]) -> list[Any]:
        found = self._compiler.apply_converters(rows, self._converters) if self._converters else rows
        return [self._instance(row) for row in found] if self._of_models else [tuple(row) for row in found]

    def _instance(self, row: Any) -> Any:
        instance = self._model.from_db(self._alias, self._names, row[self._own])
        for populator in self._related:
            populator.populate(row, instance)
        return instance


def _fixed(sql: str, params: Sequence[Any]) -> Statement:
    """The statement with what never changes written out, so that a plan that PostgreSQL keeps may count on it: an index
    on pending rows alone is of use only for `status = 'pending'`, not for whatever status it is given."""
    at = current()
    if at.vendor != "postgresql":
        return Statement(sql, params)
    from psycopg.sql import Literal

    first, *rest = sql.split("%s")
    open_, parts = [], [first]
    for param, part in zip(params, rest, strict=True):
        if isinstance(param, Param):
            open_.append(param)
            parts.append("%s")
        else:
            parts.append(Literal(param).as_string(at.connection).replace("%", "%%"))
        parts.append(part)
    return Statement("".join(parts), open_)


def _cached(key: Any, make: Callable[[], T]) -> T:
    """What was made for the calling thread's connection, made now if it was not yet."""
    kept: dict[str, Any] = current().__dict__
    cache = kept.get(_CACHE)
    if cache is None:
        cache = kept[_CACHE] = {}
    if key not in cache:
        cache[key] = make()
    found: T = cache[key]
    return found
