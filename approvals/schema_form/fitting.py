"""Whether a field can show a value without changing it, and what to ask for instead when it cannot.

A one-line input drops line breaks, a date input drops what is no date, and no input shows characters that
hide (R13). A value that would be lost, altered or unseen is shown as JSON, which has escapes for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from approvals.schema_form.fields import FieldKind, FormField, Json
from approvals.schema_form.options import index_of
from runs.schema_check.formats import is_date, is_date_time
from runs.visible import has_hidden

HIDDEN = "It holds characters that cannot be seen."
MISFIT = "Its value does not fit the field that the schema describes."


def fitted(field: FormField, value: Json) -> FormField:
    """The field, or a variant of it that can show `value` as it is."""
    if value is None and field.nullable:
        return field
    if isinstance(value, str) and field.kind in _TEXTUAL and has_hidden(value):
        return as_json(field, HIDDEN)
    if field.kind is FieldKind.STRING and isinstance(value, str) and ("\n" in value or len(value) > 80):
        return replace(field, kind=FieldKind.TEXT)
    return field if _FITS[field.kind](field, value) else as_json(field, MISFIT)


def as_json(field: FormField, reason: str) -> FormField:
    """The same question, asked as JSON text."""
    return replace(field, kind=FieldKind.JSON, options=(), reason=reason)


def _line(_field: FormField, value: Json) -> bool:
    return isinstance(value, str) and "\n" not in value and value == value.strip()


def _number(_field: FormField, value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _moment(_field: FormField, value: Json) -> bool:
    """Leap seconds and the year 0 are right by RFC 3339, but no date-time input takes them."""
    return isinstance(value, str) and is_date_time(value) and value[17:19] != "60" and value[:4] != "0000"


def _choices(field: FormField, value: Json) -> bool:
    if not isinstance(value, list):
        return False
    found = [index_of(field.options, item) for item in value]
    return None not in found and len(set(found)) == len(found)


_TEXTUAL = frozenset(
    {
        FieldKind.STRING,
        FieldKind.TEXT,
        FieldKind.EMAIL,
        FieldKind.URI,
        FieldKind.DATE,
        FieldKind.DATETIME,
    }
)

_FITS: dict[FieldKind, Callable[[FormField, Json], bool]] = {
    FieldKind.STRING: lambda _field, value: isinstance(value, str) and "\n" not in value,
    FieldKind.TEXT: lambda _field, value: isinstance(value, str),
    FieldKind.EMAIL: _line,
    FieldKind.URI: _line,
    FieldKind.DATE: lambda _field, value: isinstance(value, str) and is_date(value),
    FieldKind.DATETIME: _moment,
    FieldKind.INTEGER: _number,
    FieldKind.NUMBER: _number,
    FieldKind.BOOLEAN: lambda _field, value: isinstance(value, bool),
    FieldKind.CHOICE: lambda field, value: index_of(field.options, value) is not None,
    FieldKind.MULTICHOICE: _choices,
    FieldKind.JSON: lambda _field, _value: True,
}
