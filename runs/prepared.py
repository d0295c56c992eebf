"""Statements whose SQL is made once per connection, for the few that every run needs again and again.

Django makes the SQL of a queryset anew whenever it is evaluated, which takes several times as long as SQLite or
PostgreSQL need to carry it out; it was most of what a run cost. What a statement says stays an ordinary queryset; only
the values that change are named, as `Param`s. Rows become the same model instances, through the same converters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import AutoField, Expression, Field, Func, IntegerField, Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql import UpdateQuery
from django.db.models.sql.compiler import SQLCompiler

T = TypeVar("T")
M = TypeVar("M", bound=Model)

_CACHE = "m3_prepared"
"""The attribute of a connection that holds what was made for it, and that goes with it."""


class Param(Expression):
    """A value that is given when the statement is carried out; `field` is what it is compared with or stored in."""

    def __init__(self, name: str, field: Field[Any, Any]) -> None:
        super().__init__(output_field=field)
        self.name = name

    @classmethod
    def of(cls, model: type[Model], field: str, name: str | None = None) -> Param:
        """What a field of `model` is compared with or set to, by the field's own name if it gets no other."""
        stored: Any = model._meta.get_field(field)
        return cls(name or field, stored)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        return "%s", [self]

    def prepared(self, value: Any) -> Any:
        return self.output_field.get_db_prep_save(value, connection)


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
        with _cursor() as cursor:
            cursor.execute(query.sql, _filled(query.params, values))
            rows = cursor.fetchall()
        return query.results(rows)

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
        sql, params = _cached(self, self._make)
        with _cursor() as cursor:
            cursor.execute(sql, _filled(params, values))
            changed: int = cursor.rowcount
        return changed

    def _make(self) -> tuple[str, Sequence[Any]]:
        rows, new = self._build()
        query: Any = rows.query.chain(UpdateQuery)
        query.add_update_values(new)
        return _fixed(*query.get_compiler(connection=connection).as_sql())


def save(row: Model, fields: Sequence[str]) -> None:
    """`row.save(update_fields=fields)` for a row that exists; `auto_now` fields among them are set.

    Raises the model's DoesNotExist if it exists no longer.
    """
    model = type(row)
    known: list[Any] = [model._meta.get_field(name) for name in fields]
    update = _cached((model, tuple(fields)), lambda: _saving(model, known))
    values = {field.attname: field.pre_save(row, add=False) for field in known}
    if not update(pk=row.pk, **values):
        raise model.DoesNotExist(f"{row} exists no longer.")  # type: ignore[attr-defined]


def insert(row: Model) -> None:
    """`row.save(force_insert=True)`; a key that the database makes is set."""
    model = type(row)
    sql, fields, made = _cached((model, "insert"), lambda: _inserting(model))
    values = [field.get_db_prep_save(field.pre_save(row, add=True), connection) for field in fields]
    with _cursor() as cursor:
        cursor.execute(sql, values)
        if made is not None:
            (key,) = cursor.fetchone()
            setattr(row, made, key)
    row._state.adding, row._state.db = False, connection.alias


def _inserting(model: type[Model]) -> tuple[str, Sequence[Any], str | None]:
    """The SQL, the fields whose values it takes, and the name of the key that the database makes, if it makes one."""
    key: Any = model._meta.pk
    made = key.attname if isinstance(key, AutoField) else None
    fields: list[Any] = [field for field in model._meta.concrete_fields if field.attname != made]
    quote = connection.ops.quote_name
    columns, places = ", ".join(quote(field.column) for field in fields), ", ".join(["%s"] * len(fields))
    returning = f" RETURNING {quote(key.column)}" if made else ""
    table = quote(model._meta.db_table)
    return f"INSERT INTO {table} ({columns}) VALUES ({places}){returning}", fields, made  # noqa: S608 - our own names


def _saving(model: type[Model], fields: Sequence[Any]) -> Update:
    new = {field.name: Param(field.attname, field) for field in fields}
    return Update(lambda: (model._default_manager.filter(pk=Param("pk", model._meta.pk)), new))


class _Query:
    """A compiled SELECT and what its rows are made into."""

    def __init__(self, queryset: QuerySet[Any, Any]) -> None:
        compiler: SQLCompiler = queryset.query.get_compiler(connection=connection)
        self.sql, self.params = _fixed(*compiler.as_sql())
        self._compiler = compiler
        self._converters = compiler.get_converters([column[0] for column in compiler.select])
        self._of_models = issubclass(queryset._iterable_class, ModelIterable)
        if self._of_models:
            info: Any = compiler.klass_info
            self._model, own = info["model"], info["select_fields"]
            self._own = slice(own[0], own[-1] + 1)
            self._names = [column[0].target.attname for column in compiler.select[self._own]]
            populators: Any = get_related_populators  # whose types are those of a later Django
            self._related = populators(info, compiler.select, connection.alias)

    def results(self, rows: Sequence[Any]) -> list[Any]:
        found = self._compiler.apply_converters(rows, self._converters) if self._converters else rows
        return [self._instance(row) for row in found] if self._of_models else [tuple(row) for row in found]

    def _instance(self, row: Any) -> Any:
        instance = self._model.from_db(connection.alias, self._names, row[self._own])
        for populator in self._related:
            populator.populate(row, instance)
        return instance


def _cursor() -> CursorWrapper:
    """A cursor; on PostgreSQL one whose statements the server parses once and whose plans it may keep, if the
    connection allows it (`prepare_threshold`). Django's own cursors write the values into the SQL."""
    cursor = connection.cursor()
    if connection.vendor == "postgresql":
        # Not at the top: psycopg is not installed everywhere.
        from django.db.backends.postgresql.base import ServerBindingCursor

        cursor.cursor.close()
        cursor.cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
    return cursor


def _fixed(sql: str, params: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """The statement with what never changes written out, so that a plan that PostgreSQL keeps may count on it: an index
    on pending rows alone is of use only for `status = 'pending'`, not for whatever status it is given."""
    if connection.vendor != "postgresql":
        return sql, params
    from psycopg.sql import Literal

    first, *rest = sql.split("%s")
    open_, parts = [], [first]
    for param, part in zip(params, rest, strict=True):
        if isinstance(param, Param):
            open_.append(param)
            parts.append("%s")
        else:
            parts.append(Literal(param).as_string(connection.connection).replace("%", "%%"))
        parts.append(part)
    return "".join(parts), open_


def _cached(key: Any, make: Callable[[], T]) -> T:
    """What was made for the calling thread's connection, made now if it was not yet."""
    cache = _cache_of(connection)
    if key not in cache:
        cache[key] = make()
    found: T = cache[key]
    return found


def _cache_of(proxy: Any) -> dict[Any, Any]:
    if not hasattr(proxy, _CACHE):
        setattr(proxy, _CACHE, {})
    found: dict[Any, Any] = getattr(proxy, _CACHE)
    return found


def _filled(params: Sequence[Any], values: Mapping[str, Any]) -> list[Any]:
    return [param.prepared(values[param.name]) if isinstance(param, Param) else param for param in params]
