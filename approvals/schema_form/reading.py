"""Reading a schema into fields. The schema is untrusted and may be any JSON whatever."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from approvals.schema_form.fields import FieldKind, FormField, Json, Option
from approvals.schema_form.fitting import as_json, fitted
from approvals.schema_form.hints import bounds_of, hints_of
from approvals.schema_form.options import options_of
from approvals.schema_form.references import NotFollowed, resolved, without_null
from runs.schema_check import SchemaProblem, validate

MAX_FIELDS = 100
MAX_OPTIONS = 1_000
LONG_TEXT = 200
"""A permitted length above which a text gets an area of several lines."""

_FORMATS = {
    "email": FieldKind.EMAIL,
    "uri": FieldKind.URI,
    "date": FieldKind.DATE,
    "date-time": FieldKind.DATETIME,
}
_SCALARS = {
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}
_BEYOND_FIELDS = frozenset(
    {
        "$dynamicRef",
        "allOf",
        "anyOf",
        "const",
        "dependentSchemas",
        "else",
        "enum",
        "if",
        "oneOf",
        "patternProperties",
        "then",
    }
)
"""Keywords of a whole object that one field per property cannot express."""


def form_fields(schema: Json) -> tuple[FormField, ...]:
    """The fields for `schema` in its order; one JSON field for everything if it is not a plain object.

    An object without properties has no fields: its content is `{}`.
    """
    try:
        top = resolved(schema, schema)
    except NotFollowed:
        return (_whole("The form follows a reference that cannot be shown field by field."),)
    if reason := _why_whole(top):
        return (_whole(reason),)
    properties = top.get("properties", {})
    required = [name for name in top.get("required", ()) if isinstance(name, str)]
    names = [*properties, *(name for name in dict.fromkeys(required) if name not in properties)]
    if len(names) > MAX_FIELDS:
        return (_whole(f"The form has more than {MAX_FIELDS} fields."),)
    opened = {name: _opened(properties.get(name, True), schema) for name in names}
    fields = [
        _field(name, f"f{index}", opened[name], schema, required=name in required)
        for index, name in enumerate(names)
    ]
    return _told_apart(_with_defaults(fields, opened, schema))


def _why_whole(top: Json) -> str:
    """Why the object must be asked for as one JSON text, or nothing."""
    if not isinstance(top, dict):
        return "The form has no description of its fields."
    if top.get("type", "object") not in ("object", ["object"], ["object", "null"], ["null", "object"]):
        return "The form does not ask for an object with fields."
    properties, required = top.get("properties", {}), top.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return "The form's description is malformed."
    if _BEYOND_FIELDS & top.keys():
        return "The form combines rules that cannot be shown field by field."
    least = top.get("minProperties", 0)
    if isinstance(least, int) and least > len(properties):
        return "The form asks for fields that it does not name."
    if not properties and not required and top.get("additionalProperties", False) is not False:
        return "The form leaves the names of its fields open."
    return ""


def _whole(reason: str) -> FormField:
    return FormField(kind=FieldKind.JSON, name=None, html_name="f0", label="Answer", reason=reason)


def _opened(schema: Json, root: Json) -> Json:
    """The property with references laid open; None if they cannot be followed."""
    try:
        return resolved(schema, root)
    except NotFollowed:
        return None


def _field(name: str, html_name: str, schema: Json, root: Json, *, required: bool) -> FormField:
    plain = schema if isinstance(schema, dict) else {}
    field = FormField(
        kind=FieldKind.JSON,
        name=name,
        html_name=html_name,
        label=_label(plain, name),
        help=plain["description"] if isinstance(plain.get("description"), str) else "",
        required=required,
    )
    if schema is None:
        return as_json(field, "It refers to a description that cannot be shown as a field.")
    if not plain:
        return as_json(field, "Any JSON value is accepted.")
    return _typed(field, plain, root)


def _label(schema: dict[str, Any], name: str) -> str:
    title = schema.get("title")
    if isinstance(title, str) and title.strip():
        return title
    return name if name.strip() else "(no name)"


def _typed(field: FormField, schema: dict[str, Any], root: Json) -> FormField:
    """The kind of field for one property, in the order: options, list of options, scalar, JSON."""
    options = options_of(schema)
    if options is None:
        try:
            schema, nullable = without_null(schema, root)
        except NotFollowed:
            return as_json(field, "It refers to a description that cannot be shown as a field.")
        field = replace(field, nullable=nullable, label=_label(schema, field.name or ""))
        options = options_of(schema)
    if options is not None:
        return _offering(field, FieldKind.CHOICE, options, schema)
    kind = schema.get("type")
    if kind == "array":
        return _listed(field, schema, root)
    if kind == "string":
        return _bounded(field, _text_kind(schema), schema)
    if isinstance(kind, str) and kind in _SCALARS:
        return _bounded(field, _SCALARS[kind], schema)
    if kind == "object":
        return as_json(field, "It has fields of its own.")
    return as_json(field, "It accepts values of more than one kind.")


def _text_kind(schema: dict[str, Any]) -> FieldKind:
    name = schema.get("format")
    if isinstance(name, str) and name in _FORMATS:
        return _FORMATS[name]
    longest = schema.get("maxLength", 0)
    return FieldKind.TEXT if isinstance(longest, int | float) and longest > LONG_TEXT else FieldKind.STRING


def _listed(field: FormField, schema: dict[str, Any], root: Json) -> FormField:
    items = _opened(schema.get("items"), root)
    options = options_of(items) if isinstance(items, dict) else None
    if options is None or "prefixItems" in schema or "contains" in schema:
        return as_json(field, "It is a list whose entries are not a fixed choice.")
    return _offering(field, FieldKind.MULTICHOICE, options, schema)


def _offering(
    field: FormField, kind: FieldKind, options: tuple[Option, ...], schema: dict[str, Any]
) -> FormField:
    if len(options) > MAX_OPTIONS:
        return as_json(field, f"It offers more than {MAX_OPTIONS:,} values.")
    return replace(_bounded(field, kind, schema), options=options)


def _bounded(field: FormField, kind: FieldKind, schema: dict[str, Any]) -> FormField:
    bounds = bounds_of(schema)
    return replace(field, kind=kind, bounds=bounds, hints=hints_of(kind, bounds))


def _with_defaults(fields: list[FormField], opened: dict[str, Json], schema: Json) -> list[FormField]:
    """Give the fields those defaults that the schema itself accepts; a bad default is ignored."""
    wanted = {
        name: part["default"] for name, part in opened.items() if isinstance(part, dict) and "default" in part
    }
    if not wanted:
        return fields
    try:
        errors = validate(schema, wanted)
    except SchemaProblem:
        return fields
    if any(error.validator in ("json", "limit") for error in errors):
        return fields
    bad = {error.path[0] for error in errors if error.path}
    return [
        _defaulted(field, wanted[field.name])
        if field.name is not None and field.name in wanted and field.name not in bad
        else field
        for field in fields
    ]


def _defaulted(field: FormField, default: Json) -> FormField:
    """A null default is what leaving the field alone means already."""
    if default is None and field.nullable:
        return field
    return replace(fitted(field, default), default=default, has_default=True)


def _told_apart(fields: list[FormField]) -> tuple[FormField, ...]:
    """Two fields with one label get their keys added."""
    seen = Counter(field.label for field in fields)
    return tuple(
        replace(field, label=f"{field.label} ({field.name})") if seen[field.label] > 1 else field
        for field in fields
    )
