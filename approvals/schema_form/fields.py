"""What a form asks, as values: one frozen description per field, made from an untrusted JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Json = Any
"""A value that `json.dumps` accepts."""


class FieldKind(StrEnum):
    """How a property is asked for."""

    STRING = "string"
    TEXT = "text"
    """A string with several lines or of some length."""
    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATETIME = "datetime"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    MULTICHOICE = "multichoice"
    JSON = "json"
    """Anything else: a labelled JSON text, checked on the server (R38)."""


@dataclass(frozen=True)
class Option:
    """One offered value. `label` is what a person reads; forms post the option's index (R37)."""

    label: str
    value: Json


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One question of a form.

    `name` is the schema's key: untrusted, never an element id or name (R15); None means that the field holds
    an object whose entries join the content. `html_name` is `f0`, `f1` ... `bounds` are the schema keywords
    that limit the value, `hints` the same in words. `nullable`: null is accepted. `reason` says why a JSON
    text is asked for. `default` counts only with `has_default`.
    """

    kind: FieldKind
    name: str | None
    html_name: str
    label: str
    help: str = ""
    required: bool = False
    nullable: bool = False
    default: Json = None
    has_default: bool = False
    bounds: Mapping[str, Json] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    reason: str = ""
