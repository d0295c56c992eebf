"""JSON in a text area: where a mistake is, nothing rounded, nothing hidden (R13, R36, R38)."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from approvals.form_values.numbers import number_of
from approvals.form_values.refusals import Refused
from approvals.schema_form.fields import Json
from runs.canonical import NotJson, canonical_json
from runs.visible import has_hidden

MAX_CHARS = 500_000


def value_of(text: str) -> Json:
    """The JSON value that `text` spells. Raises Refused, for a slip in the grammar with line and column."""
    if len(text) > MAX_CHARS:
        raise Refused(f"Enter at most {MAX_CHARS:,} characters.")
    try:
        value = json.loads(
            text,
            parse_float=number_of,
            parse_int=number_of,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
        canonical_json(value)
    except json.JSONDecodeError as error:
        raise Refused(f"This is not JSON. Line {error.lineno}, column {error.colno}: {error.msg}.") from None
    except RecursionError:
        raise Refused("This is nested too deeply.") from None
    except NotJson as error:
        raise Refused(error.message) from None
    return value


def text_of(value: Json) -> str:
    """`value` as indented JSON in which every character that hides is written as an escape."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    except ValueError:
        text = canonical_json(value)
    if not has_hidden(text):
        return text
    return "".join(_escaped(character) if has_hidden(character) else character for character in text)


def _escaped(character: str) -> str:
    """Outside its strings JSON is plain ASCII, so a hidden character always stands where an escape may."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two entries with one name, one would be dropped without a word: refuse."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Refused(f'The name "{name[:80]}" stands twice in one object.')
        found[name] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise Refused(f"{name} is not a number in JSON.")
