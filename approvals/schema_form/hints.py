"""The bounds of a property in words, shown before anything is typed."""

from __future__ import annotations

from typing import Any

from approvals.schema_form.fields import FieldKind, Json

_TEXTS = frozenset({FieldKind.STRING, FieldKind.TEXT, FieldKind.EMAIL, FieldKind.URI})
_KNOWN_FORMATS = frozenset({"email", "uri", "date", "date-time"})

BOUNDS = (
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
)


def bounds_of(schema: dict[str, Any]) -> dict[str, Json]:
    """The limiting keywords of a property as the schema gives them."""
    return {keyword: schema[keyword] for keyword in BOUNDS if keyword in schema}


def hints_of(kind: FieldKind, bounds: dict[str, Json]) -> tuple[str, ...]:
    """Sentences for the bounds that matter to this kind of field."""
    if kind in _TEXTS:
        return _lengths(bounds)
    if kind in (FieldKind.INTEGER, FieldKind.NUMBER):
        return _ranges(kind, bounds)
    if kind is FieldKind.MULTICHOICE:
        least, most = _number(bounds, "minItems"), _number(bounds, "maxItems")
        return _span("Choose", least if least != 0 else None, most, "")
    return ()


def _lengths(bounds: dict[str, Json]) -> tuple[str, ...]:
    least, most = _number(bounds, "minLength"), _number(bounds, "maxLength")
    hints = _span("", least if least != 0 else None, most, "character")
    if isinstance(pattern := bounds.get("pattern"), str):
        hints += (f"Must match the pattern {pattern}",)
    if isinstance(name := bounds.get("format"), str) and name not in _KNOWN_FORMATS:
        hints += (f"Format: {name}.",)
    return hints


def _ranges(kind: FieldKind, bounds: dict[str, Json]) -> tuple[str, ...]:
    hints: tuple[str, ...] = ("A whole number.",) if kind is FieldKind.INTEGER else ()
    hints += _span("", _number(bounds, "minimum"), _number(bounds, "maximum"), "")
    if (above := _number(bounds, "exclusiveMinimum")) is not None:
        hints += (f"More than {above}.",)
    if (below := _number(bounds, "exclusiveMaximum")) is not None:
        hints += (f"Less than {below}.",)
    if (step := _number(bounds, "multipleOf")) is not None:
        hints += (f"In steps of {step}.",)
    return hints


def _span(verb: str, least: float | None, most: float | None, noun: str) -> tuple[str, ...]:
    if least is None and most is None:
        return ()
    if least == most:
        words = f"exactly {least}"
    elif least is None:
        words = f"at most {most}"
    elif most is None:
        words = f"at least {least}"
    else:
        words = f"between {least} and {most}"
    plural = "" if not noun else f" {noun}" if (least if most is None else most) == 1 else f" {noun}s"
    sentence = f"{verb} {words}{plural}.".strip()
    return (sentence[0].upper() + sentence[1:],)


def _number(bounds: dict[str, Json], keyword: str) -> float | None:
    value = bounds.get(keyword)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
