"""What a failed check is called in plain words, for the person who has to correct it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jsonschema.exceptions import ValidationError, best_match

from runs.canonical import canonical_json

_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}

_FORMATS = {
    "email": "Enter an e-mail address, such as name@example.org.",
    "uri": "Enter a full address with its scheme, such as https://example.org/page.",
    "date": "Enter a date that exists, as year-month-day, such as 2026-05-31.",
    "date-time": "Enter a date and time with its offset, such as 2026-05-31T14:30:00+02:00.",
    "time": "Enter a time with its offset, such as 14:30:00+02:00.",
    "hostname": "Enter a host name, such as www.example.org.",
    "ipv4": "Enter an IPv4 address, such as 192.0.2.10.",
    "ipv6": "Enter an IPv6 address, such as 2001:db8::10.",
    "uuid": "Enter a UUID, such as 123e4567-e89b-12d3-a456-426614174000.",
    "regex": "Enter a regular expression.",
}

MAX_QUOTED = 200
"""Characters of a schema value that a message repeats."""


def deepest(error: ValidationError) -> ValidationError:
    """The branch of a failed anyOf or oneOf that says most about what is wrong, else the error itself."""
    if not error.context:
        return error
    return best_match(iter([error])) or error


def in_words(error: ValidationError) -> str:
    """One or two sentences that say what would be accepted."""
    rule = _SENTENCES.get(str(error.validator))
    return rule(error.validator_value, error.instance) if rule else "This value is not allowed."


def quoted(value: Any) -> str:
    """A schema value as text for a message: strings as they are, others as JSON, cut with an ellipsis."""
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _type(wanted: Any, _value: Any) -> str:
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    return f"Must be {' or '.join(_TYPES[name] for name in names)}."


def _format(wanted: Any, _value: Any) -> str:
    return _FORMATS.get(wanted, f"Is not in the format {quoted(wanted)}.")


def _counted(amount: int, noun: str) -> str:
    if amount == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{amount:,} {plural}"


def _at_least(noun: str) -> Callable[[Any, Any], str]:
    return lambda wanted, value: f"Must have at least {_counted(int(wanted), noun)}; it has {len(value):,}."


def _at_most(noun: str) -> Callable[[Any, Any], str]:
    return lambda wanted, value: f"Must have at most {_counted(int(wanted), noun)}; it has {len(value):,}."


def _not_asked(_wanted: Any, _value: Any) -> str:
    return "This is not asked for."


def _branch(wanted: Any, _value: Any) -> str:
    if all(isinstance(part, dict) and ("const" in part or "enum" in part) for part in wanted):
        return "Must be one of the listed values."
    return "Must fit one of the accepted forms."


_SENTENCES: dict[str, Callable[[Any, Any], str]] = {
    "required": lambda _wanted, _value: "This is required.",
    "type": _type,
    "format": _format,
    "pattern": lambda wanted, _value: f"Must match the pattern {quoted(wanted)}",
    "enum": lambda _wanted, _value: "Must be one of the listed values.",
    "const": lambda wanted, _value: f"Must be exactly {quoted(wanted)}",
    "minLength": _at_least("character"),
    "maxLength": _at_most("character"),
    "minItems": _at_least("entry"),
    "maxItems": _at_most("entry"),
    "minProperties": _at_least("answer"),
    "maxProperties": _at_most("answer"),
    "minimum": lambda wanted, _value: f"Must be {quoted(wanted)} or more.",
    "maximum": lambda wanted, _value: f"Must be {quoted(wanted)} or less.",
    "exclusiveMinimum": lambda wanted, _value: f"Must be more than {quoted(wanted)}.",
    "exclusiveMaximum": lambda wanted, _value: f"Must be less than {quoted(wanted)}.",
    "multipleOf": lambda wanted, _value: f"Must be a multiple of {quoted(wanted)}.",
    "uniqueItems": lambda _wanted, _value: "Must not have the same entry twice.",
    "additionalProperties": _not_asked,
    "unevaluatedProperties": _not_asked,
    "False schema": _not_asked,
    "items": lambda _wanted, _value: "Has more entries than are asked for.",
    "unevaluatedItems": lambda _wanted, _value: "Has more entries than are asked for.",
    "anyOf": _branch,
    "oneOf": _branch,
    "contains": lambda _wanted, _value: "Does not have the entry that is asked for.",
    "minContains": lambda _wanted, _value: "Has too few of the entries that are asked for.",
    "maxContains": lambda _wanted, _value: "Has too many of the entries that are limited.",
}
