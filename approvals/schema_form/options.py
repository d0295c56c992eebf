"""The values a property offers, in every spelling that servers use (R37)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from approvals.schema_form.fields import Json, Option
from runs.canonical import NotJson, canonical_json

EMPTY_TEXT = "(empty text)"


def options_of(schema: dict[str, Any]) -> tuple[Option, ...] | None:
    """The options of `enum`, `enum` + `enumNames`, `oneOf`/`anyOf` with `const`, or `const`; else None.

    Labels that would be told apart by nothing get their value as JSON added, so `1` and `"1"` can be.
    """
    pairs = _enum(schema) or _titled(schema, "oneOf") or _titled(schema, "anyOf") or _const(schema)
    return _told_apart(pairs) if pairs else None


def index_of(options: tuple[Option, ...], value: Json) -> int | None:
    """Where `value` is offered: an exact match before one of equal number (1 and 1.0); None if nowhere."""
    text = canonical_json(value)
    for index, option in enumerate(options):
        if canonical_json(option.value) == text:
            return index
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for index, option in enumerate(options):
        if not isinstance(option.value, bool) and option.value == value:
            return index
    return None


def _enum(schema: dict[str, Any]) -> list[Option] | None:
    values = schema.get("enum")
    if not isinstance(values, list) or not values:
        return None
    names = schema.get("enumNames")
    labels = names if isinstance(names, list) else []
    return [
        Option(_label(labels[index] if index < len(labels) else None, value), value)
        for index, value in enumerate(values)
    ]


def _titled(schema: dict[str, Any], keyword: str) -> list[Option] | None:
    entries = schema.get(keyword)
    if not isinstance(entries, list) or not entries:
        return None
    options = []
    for entry in entries:
        found = _const(entry) if isinstance(entry, dict) else None
        if found is None:
            return None
        options.extend(found)
    return options


def _const(schema: dict[str, Any]) -> list[Option] | None:
    """One value: `const`, or an `enum` of one, under its title."""
    if "const" in schema:
        return [Option(_label(schema.get("title"), schema["const"]), schema["const"])]
    only = schema.get("enum")
    if isinstance(only, list) and len(only) == 1:
        return [Option(_label(schema.get("title"), only[0]), only[0])]
    return None


def _label(name: Json, value: Json) -> str:
    if isinstance(name, str) and name.strip():
        return name
    if isinstance(value, str):
        return value if value.strip() else EMPTY_TEXT
    try:
        return canonical_json(value)
    except NotJson:  # Infinity, say, which some programs write into what they call JSON
        return str(value)


def _told_apart(options: list[Option]) -> tuple[Option, ...]:
    seen = Counter(option.label for option in options)
    return tuple(
        Option(f"{option.label} ({canonical_json(option.value)})", option.value)
        if seen[option.label] > 1
        else option
        for option in options
    )
