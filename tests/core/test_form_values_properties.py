"""Whatever the form and whatever is posted: valid answers survive, arguments survive, garbage is refused."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.form_values import read, shown, untouched
from approvals.schema_form import editing_fields, form_fields
from runs.schema_check import validate

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = TEXTS | st.sampled_from(["__proto__", "constructor", '"><script>', "f0", "r0-f0", ""])
PROPERTIES = st.one_of(
    st.tuples(st.just({"type": "string"}), TEXTS.filter(bool)),
    st.tuples(st.just({"type": "string", "maxLength": 5000}), TEXTS.filter(bool)),
    st.tuples(st.just({"type": "integer"}), st.integers()),
    st.tuples(st.just({"type": "number"}), st.floats(allow_nan=False, allow_infinity=False) | st.integers()),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"type": "string", "format": "date"}), st.dates().map(str)),
    st.lists(TEXTS | st.integers() | st.none() | st.booleans(), min_size=1, max_size=12).flatmap(
        lambda values: st.tuples(st.just({"enum": values}), st.sampled_from(values))
    ),
    st.lists(TEXTS, min_size=1, max_size=5, unique=True).flatmap(
        lambda values: st.tuples(
            st.just({"type": "array", "items": {"enum": values}}),
            st.lists(st.sampled_from(values), min_size=1, unique=True).map(
                lambda some: sorted(some, key=values.index)
            ),
        )
    ),
    st.tuples(st.just({"type": "object"}), st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3)),
)
FORMS = st.dictionaries(NAMES, st.tuples(PROPERTIES, st.booleans()), max_size=5)


@settings(max_examples=200, deadline=None)
@given(FORMS)
def test_any_valid_answer_to_a_flat_form_goes_through_unchanged(form: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {name: {**part, "default": value} for name, ((part, value), _) in form.items()},
        "required": [name for name, (_, required) in form.items() if required],
    }
    content = {name: value for name, ((_, value), _) in form.items()}
    fields = form_fields(schema)
    posted: dict[str, Any] = {}
    for field in fields:
        posted.update(untouched(field))
    reading = read(schema, fields, posted)
    assert json.dumps(reading.content) == json.dumps(content)
    assert validate(schema, reading.content) == []


@settings(max_examples=200, deadline=None)
@given(FORMS, st.dictionaries(NAMES, TEXTS | st.none() | st.floats(allow_nan=False, allow_infinity=False)))
def test_any_arguments_survive_the_editor_untouched(form: dict[str, Any], arguments: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {name: part for name, ((part, _), _) in form.items()}}
    fields, current = editing_fields(schema, arguments)
    posted: dict[str, Any] = {}
    for field in fields:
        posted.update(
            shown(field, current[field.html_name]) if field.html_name in current else untouched(field)
        )
    posted = {name: [text.replace("\n", "\r\n") for text in texts] for name, texts in posted.items()}
    reading = read(schema, fields, posted, current=current)
    if validate(schema, arguments) == []:
        assert json.dumps(reading.content, sort_keys=True) == json.dumps(arguments, sort_keys=True)
    else:
        assert reading.content is None


GARBAGE = st.dictionaries(
    st.sampled_from(["f0", "f1", "f2", "f0-zone", "other", "x"]),
    st.lists(
        st.text(max_size=20)
        | st.sampled_from(
            ["0", "1", "true", "1e999999999", "[[[", '{"a":NaN}', "2026-02-03T04:05", "\ud800"]
        ),
        max_size=3,
    ),
)


@settings(max_examples=300, deadline=None)
@given(FORMS, GARBAGE)
def test_no_posted_garbage_makes_reading_fail(form: dict[str, Any], posted: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {name: part for name, ((part, _), _) in form.items()}}
    schema["properties"]["when"] = {"type": "string", "format": "date-time"}
    reading = read(schema, form_fields(schema), posted)
    assert reading.content is None or validate(schema, reading.content) == []
