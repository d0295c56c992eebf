"""Statements whose SQL is made once per connection, for the few that every run needs again and again.

Django makes the SQL of a queryset anew whenever it is evaluated, which takes several times as long as SQLite or
PostgreSQL need to carry it out; it was most of what a run cost. What a statement says stays an ordinary queryset; only
the values that change are named, as `Param`s. Rows become the same model instances, through the same converters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Func, IntegerField, QuerySet
from django.db.models.query import ModelIterable, get_related_populators
from django.db.models.sql import UpdateQuery
from django.db.models.sql.compiler import SQLCompiler

from runs import write_behind
from runs.statements import Given, Param, Result, Statement, current

__all__ = ["Asked", "Number", "Param", "Rows", "Update", "UpdateOne", "cached", "together"]

T = TypeVar("T")

_CACHE = "m3_prepared"
"""The attribute of a connection that holds what was made for it, and that goes with it."""


class Number(Func):
    """How many rows there are, as the one value of one row (Django's own `Count` would group by a column first)."""

    template = "COUNT(*)"
    output_field = IntegerField()


@dataclass(frozen=True)
class Asked(Generic[T]):
    """A question with the values of its parameters, and what its answer is made into."""

    given: Given
    read: Callable[[Result], T]


def together(*asked: Asked[Any]) -> list[Any]:
    """Ask one after the other, on PostgreSQL in one round trip; gives the answers."""
    results = write_behind.carry_out([one.given for one in asked])
    return [one.read(result) for one, result in zip(asked, results, strict=True)]


class Rows(Generic[T]):
    """A SELECT: calling it with the values of its parameters gives model instances, or tuples of a `values_list`."""

    def __init__(self, build: Callable[[], QuerySet[Any, Any]]) -> None:
        self._build = build

    def asked(self, **values: Any) -> Asked[list[T]]:
        """To be asked `together` with others."""
        query = cached(self, self._make)
        return Asked(query.statement.given(values, rows=True), query.results)

    def __call__(self, **values: Any) -> list[T]:
        found: list[T]
        (found,) = together(self.asked(**values))
        return found

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
        ((_, changed),) = write_behind.carry_out([self.statement().given(values)])
        return changed

    def statement(self) -> Statement:
        """The statement on the calling thread's connection."""
        return cached(self, self._make)

    def later(self, **values: Any) -> None:
        """For whoever need not know how many: with other writes that wait, if they do."""
        waiting = write_behind.active()
        if waiting is None:
            self(**values)
        else:
            waiting.add_whole(self.statement().given(values), self._table())

    def _table(self) -> str:
        rows, _ = cached((self, "built"), self._build)
        return str(rows.model._meta.db_table)

    def _make(self, ending: str = "") -> Statement:
        rows, new = self._build()
        query: Any = rows.query.chain(UpdateQuery)
        query.add_update_values(new)
        sql, params = query.get_compiler(connection=current()).as_sql()
        return _fixed(sql + ending, params)


class UpdateOne(Update):
    """An UPDATE of at most one row; `after` gives what stands in the row's `columns` then, as the driver gives it."""

    def __init__(
        self, build: Callable[[], tuple[QuerySet[Any, Any], Mapping[str, Any]]], columns: Sequence[str]
    ) -> None:
        super().__init__(build)
        self._columns = columns

    def asked(self, **values: Any) -> Asked[tuple[int, ...] | None]:
        """`after`, to be asked `together` with others."""
        given = cached((self, "after"), self._returning).given(values, rows=True)
        return Asked(given, lambda result: tuple(result[0][0]) if result[0] else None)

    def after(self, **values: Any) -> tuple[int, ...] | None:
        """None if it changed no row."""
        found: tuple[int, ...] | None
        (found,) = together(self.asked(**values))
        return found

    def _returning(self) -> Statement:
        return self._make(f" RETURNING {', '.join(current().ops.quote_name(name) for name in self._columns)}")


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

    def results(self, result: Result) -> list[Any]:
        rows, _ = result
        if not rows:
            return []
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


def cached(key: Any, make: Callable[[], T]) -> T:
    """What was made for the calling thread's connection, made now if it was not yet."""
    waiting = write_behind.active()
    kept: dict[str, Any] = (waiting.at if waiting else current()).__dict__
    cache = kept.get(_CACHE)
    if cache is None:
        cache = kept[_CACHE] = {}
    if key not in cache:
        cache[key] = make()
    found: T = cache[key]
    return found
