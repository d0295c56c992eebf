"""What a field's inputs hold for a value: the raw text that posting unchanged sends back."""

from __future__ import annotations

from approvals.form_values.datetimes import parted
from approvals.form_values.json_text import text_of
from approvals.schema_form.fields import FieldKind, FormField, Json
from approvals.schema_form.options import index_of
from runs.canonical import canonical_json

Raw = dict[str, tuple[str, ...]]
"""Posted texts by input name, without any prefix."""

ZONE = "-zone"
"""Appended to `html_name` for the second input of a date-time."""


def shown(field: FormField, value: Json) -> Raw:
    """The raw texts for `value`, which the field can show (`schema_form.fitting.fitted`)."""
    name = field.html_name
    if field.kind is FieldKind.JSON:
        return {name: (text_of(value),)}
    if field.kind is FieldKind.CHOICE:
        return {name: _indexes(field, [value])}
    if value is None:
        return {name: ()}
    if field.kind is FieldKind.DATETIME:
        local, zone = parted(value)
        return {name: (local,), name + ZONE: (zone,)}
    if field.kind is FieldKind.MULTICHOICE:
        return {name: _indexes(field, value)}
    return {name: (value if isinstance(value, str) else canonical_json(value),)}


def untouched(field: FormField) -> Raw:
    """The raw texts before anybody typed: the default's, or none."""
    return shown(field, field.default) if field.has_default else {field.html_name: ()}


def _indexes(field: FormField, values: list[Json]) -> tuple[str, ...]:
    return tuple(str(index) for value in values if (index := index_of(field.options, value)) is not None)
