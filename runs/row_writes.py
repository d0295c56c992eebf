"""One row saved or inserted, past Django's machinery: as `Model.save` does, for rows that need nothing else of it.

Inside `write_behind.kept` they wait; the values are those of the moment of the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import AutoField, Model

from runs import statements, write_behind
from runs.prepared import Param, Update, cached
from runs.statements import Given, Result, Statement, current
from runs.write_behind import Kept, Values

TOGETHER: Final = 20
"""Rows that one statement inserts: each number of them is a statement of its own, whose values are limited too."""


def save(row: Model, fields: Sequence[str]) -> None:
    """`row.save(update_fields=fields)` for a row that exists; `auto_now` fields among them are set.

    Raises the model's DoesNotExist if it exists no longer, at the latest when it is stored.
    """
    values = {field.attname: field.pre_save(row, add=False) for field in _fields(type(row), fields)}
    waiting = write_behind.active()
    if waiting is None:
        _store(_Saving(row, values))
        return
    waiting.changed(row)
    known = waiting.rows.get((type(row), row.pk))
    if known is None:
        known = waiting.rows[type(row), row.pk] = {}
        waiting.add(_Saving(row, known), row._meta.db_table)
    known.update(values)


def insert(row: Model, *, key_needed: bool = True) -> None:
    """`row.save(force_insert=True)`; a key that the database makes is set, at once if it is `key_needed`."""
    model = type(row)
    fields, made = cached((model, "insert"), lambda: _inserting(model))
    values = {field.attname: field.pre_save(row, add=True) for field in fields}
    waiting = write_behind.active()
    if waiting is None:
        _store(_Inserting(model, [(row, values)]))
    elif made and key_needed:
        new = _Inserting(model, [(row, values)])
        new.done(waiting.at_once(new.given()))
    else:
        _insert_later(waiting, row, values)


def _insert_later(waiting: Kept, row: Model, values: Values) -> None:
    model = type(row)
    known = waiting.inserts.get(model)
    if known is None or len(known) == TOGETHER:
        known = waiting.inserts[model] = []
        waiting.add(_Inserting(model, known), model._meta.db_table)
    known.append((row, values))
    if row.pk is not None:
        waiting.rows[model, row.pk] = values
    row._state.adding, row._state.db = False, waiting.at.alias


def _store(write: _Saving | _Inserting) -> None:
    (result,) = statements.carry_out([write.given()])
    write.done(result)


class _Saving:
    """New values of one row."""

    def __init__(self, row: Model, values: Values) -> None:
        self._row, self._values = row, values

    def given(self) -> Given:
        model, names = type(self._row), tuple(sorted(self._values))
        update = cached((model, names), lambda: _saving(model, names))
        return update.given({"pk": self._row.pk, **self._values})

    def done(self, result: Result) -> None:
        _, changed = result
        if not changed:
            raise type(self._row).DoesNotExist(f"{self._row} exists no longer.")  # type: ignore[attr-defined]


class _Inserting:
    """New rows of one table."""

    def __init__(self, model: type[Model], rows: Sequence[tuple[Model, Values]]) -> None:
        self._model, self._rows = model, rows
        self._fields, self._made = cached((model, "insert"), lambda: _inserting(model))

    def given(self) -> Given:
        model, count = self._model, len(self._rows)
        statement = cached((model, count), lambda: _insertion(model, self._fields, self._made, count))
        values = {
            f"{field.attname}.{number}": values[field.attname]
            for number, (_, values) in enumerate(self._rows)
            for field in self._fields
        }
        return statement.given(values, rows=self._made is not None)

    def done(self, result: Result) -> None:
        rows, _ = result
        for (row, _), made in zip(self._rows, rows, strict=False):
            setattr(row, self._made, made[0])  # type: ignore[arg-type]  # there are rows if a key was made
        for row, _ in self._rows:
            row._state.adding, row._state.db = False, current().alias


def _fields(model: type[Model], names: Sequence[str]) -> list[Any]:
    return [model._meta.get_field(name) for name in names]


def _saving(model: type[Model], attnames: Sequence[str]) -> Statement:
    known: dict[str, Any] = {field.attname: field for field in model._meta.concrete_fields}
    new = {known[name].name: Param(name, known[name]) for name in attnames}
    return Update(lambda: (model._default_manager.filter(pk=Param("pk", model._meta.pk)), new)).statement()


def _inserting(model: type[Model]) -> tuple[Sequence[Any], str | None]:
    """The fields whose values a new row takes, and the name of the key that the database makes, if it does."""
    key: Any = model._meta.pk
    made = key.attname if isinstance(key, AutoField) else None
    return [field for field in model._meta.concrete_fields if field.attname != made], made


def _insertion(model: type[Model], fields: Sequence[Any], made: str | None, count: int) -> Statement:
    quote = current().ops.quote_name
    columns, places = ", ".join(quote(field.column) for field in fields), ", ".join(["%s"] * len(fields))
    rows = ", ".join([f"({places})"] * count)
    returning = f" RETURNING {quote(made)}" if made else ""
    sql = f"INSERT INTO {quote(model._meta.db_table)} ({columns}) VALUES {rows}{returning}"  # noqa: S608
    params = [Param(f"{field.attname}.{number}", field) for number in range(count) for field in fields]
    return Statement(sql, params)
