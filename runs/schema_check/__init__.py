"""The one validator of the product: store, page and API all ask here (C15-C18, R33, R40).

Plain package. JSON Schema 2020-12; the formats of `formats`; ECMA-262 patterns; 1.0 satisfies integer; NaN
and infinities are refused; extra properties are allowed unless the schema forbids them. Nothing is ever
fetched, and size, depth and work are bounded, because both schema and value come from outside.

    compiling   schema -> validator, or SchemaProblem
    keywords    what differs from jsonschema's own rules
    patterns    bounded ECMA-262 matching
    formats     e-mail, uri, date, date-time ... by their RFCs
    words       failures as sentences
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from runs.canonical import NotJson, Path, canonical_json
from runs.schema_check.compiling import SchemaProblem, compiled
from runs.schema_check.keywords import OutOfWork, limited_work
from runs.schema_check.patterns import PatternUndecided
from runs.schema_check.words import deepest, in_words

__all__ = ["FieldError", "SchemaProblem", "check_schema", "validate"]

MAX_VALUE_CHARS = 1_000_000
MAX_ERRORS = 200


@dataclass(frozen=True)
class FieldError:
    """One thing that is wrong with a value.

    `path` leads to it from the root; a missing or an extra property is named by its own path. `message` is a
    sentence for the person who filled the form. `validator` is the schema keyword that failed, or `json` (the
    value is no storable JSON) or `limit` (the check was given up at a bound; the value is refused).
    """

    path: Path
    message: str
    validator: str


def check_schema(schema: Any) -> None:
    """Raise SchemaProblem if `schema` is no usable schema: wrong keywords, bad pattern, $ref to elsewhere."""
    compiled(schema)


def validate(schema: Any, value: Any) -> list[FieldError]:
    """Everything that is wrong with `value`, at most MAX_ERRORS; an empty list means valid.

    Raises SchemaProblem (only) when the schema itself cannot be used.
    """
    validator = compiled(schema)
    try:
        plain = _plain(value)
    except NotJson as error:
        return [FieldError(error.path, error.message, "json")]
    try:
        with limited_work():
            return list(islice(_errors(validator, plain), MAX_ERRORS))
    except PatternUndecided as given_up:
        return [FieldError((), str(given_up), "limit")]
    except (OutOfWork, RecursionError):
        return [FieldError((), "This is too much to check against its schema.", "limit")]


def _errors(validator: Any, value: Any) -> Iterator[FieldError]:
    for error in validator.iter_errors(value):
        leaf = deepest(error)
        keyword = "false" if leaf.validator is None else str(leaf.validator)
        yield FieldError(tuple(leaf.absolute_path), in_words(leaf), keyword)


def _plain(value: Any) -> Any:
    """A copy made of dict, list, str, int, float, bool and None. Raises NotJson."""
    text = canonical_json(value)
    if len(text) > MAX_VALUE_CHARS:
        raise NotJson((), f"Is longer than {MAX_VALUE_CHARS:,} characters in all.")
    if "\\u0000" in text:
        _refuse_nul(value, ())
    try:
        return json.loads(text)
    except ValueError:
        raise NotJson((), "Has a number with too many digits.") from None


def _refuse_nul(value: Any, path: Path) -> None:
    """PostgreSQL keeps no NUL character in a JSON value, so neither database gets one."""
    if isinstance(value, str) and "\0" in value:
        raise NotJson(path, "Has a NUL character, which cannot be stored.")
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _refuse_nul(item, (*path, index))
    elif hasattr(value, "items"):
        for key, item in value.items():
            _refuse_nul(key, path)
            _refuse_nul(item, (*path, key))
