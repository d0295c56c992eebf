"""JSON in a text area: where a mistake is, nothing rounded, nothing hidden (R13, R36, R38)."""

from __future__ import annotations

import json

from approvals.form_values.numbers import number_of
from approvals.form_values.refusals import Refused
from approvals.schema_form.fields import Json
from runs import strict_json
from runs.canonical import NotJson, canonical_json
from runs.visible import has_hidden

MAX_CHARS = 500_000


def value_of(text: str) -> Json:
    """The JSON value that `text` spells. Raises Refused, for a slip in the grammar with line and column."""
    if len(text) > MAX_CHARS:
        raise Refused(f"Enter at most {MAX_CHARS:,} characters.")
    try:
        value = strict_json.loads(text, number=number_of)
        canonical_json(value)
    except strict_json.StrictJsonError as error:
        raise Refused(f"This is not JSON. {error}" if error.place else error.message) from None
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
