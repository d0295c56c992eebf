"""From a schema to fields: which kind, which label, which options, and what falls back to JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.schema_form import FieldKind, FormField, editing_fields, form_fields


def only(schema: Any, *, required: bool = False, **root: Any) -> FormField:
    """The field of the one property `p`."""
    whole = {
        "type": "object",
        "properties": {"p": schema},
        **({"required": ["p"]} if required else {}),
        **root,
    }
    [field] = form_fields(whole)
    return field


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, FieldKind.STRING),
        ({"type": "string", "maxLength": 2000}, FieldKind.TEXT),
        ({"type": "string", "format": "email"}, FieldKind.EMAIL),
        ({"type": "string", "format": "uri"}, FieldKind.URI),
        ({"type": "string", "format": "date"}, FieldKind.DATE),
        ({"type": "string", "format": "date-time"}, FieldKind.DATETIME),
        ({"type": "string", "format": "ipv4"}, FieldKind.STRING),
        ({"type": "integer"}, FieldKind.INTEGER),
        ({"type": "number"}, FieldKind.NUMBER),
        ({"type": "boolean"}, FieldKind.BOOLEAN),
        ({"enum": ["a"]}, FieldKind.CHOICE),
        ({"const": 5}, FieldKind.CHOICE),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, FieldKind.CHOICE),
        ({"anyOf": [{"const": 1}, {"enum": [2]}]}, FieldKind.CHOICE),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, FieldKind.MULTICHOICE),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, FieldKind.MULTICHOICE),
        ({"type": "array", "items": {"oneOf": [{"const": "a", "title": "A"}]}}, FieldKind.MULTICHOICE),
        ({"type": ["string"]}, FieldKind.STRING),
        ({"type": ["integer", "null"]}, FieldKind.INTEGER),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, FieldKind.DATE),
        ({"allOf": [{"type": "boolean"}]}, FieldKind.BOOLEAN),
        ({"type": ["string", "integer"]}, FieldKind.JSON),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, FieldKind.JSON),
        ({"type": "array", "items": {"type": "string"}}, FieldKind.JSON),
        ({"type": "array"}, FieldKind.JSON),
        ({"type": "object"}, FieldKind.JSON),
        ({"type": "null"}, FieldKind.JSON),
        ({"minLength": 3}, FieldKind.JSON),
        ({"$ref": "https://example.org/x"}, FieldKind.JSON),
        ({"$ref": "#/properties/p"}, FieldKind.JSON),
        ({"enum": list(range(1001))}, FieldKind.JSON),
        ({}, FieldKind.JSON),
        (True, FieldKind.JSON),
        (5, FieldKind.JSON),
    ],
)
def test_each_property_gets_its_kind_of_field(schema: Any, kind: FieldKind) -> None:
    field = only(schema)
    assert field.kind is kind
    assert (field.reason != "") is (kind is FieldKind.JSON)


def test_names_of_inputs_are_numbered_and_never_the_keys_of_the_schema() -> None:
    fields = form_fields({"properties": {'"><script>': {}, "__proto__": {}, "": {}}})
    assert [(field.name, field.html_name) for field in fields] == [
        ('"><script>', "f0"),
        ("__proto__", "f1"),
        ("", "f2"),
    ]


def test_the_title_is_the_label_and_without_one_the_key() -> None:
    assert only({"type": "string", "title": "Name", "description": "Yours"}).label == "Name"
    assert only({"type": "string", "title": "  "}).label == "p"
    assert form_fields({"properties": {" ": {"type": "string"}}})[0].label == "(no name)"


def test_two_fields_with_one_label_are_told_apart_by_their_keys() -> None:
    fields = form_fields({"properties": {"a": {"title": "Name"}, "b": {"title": "Name"}}})
    assert [field.label for field in fields] == ["Name (a)", "Name (b)"]


@pytest.mark.parametrize(
    ("schema", "labels"),
    [
        ({"enum": ["r", "g"], "enumNames": ["Red", "Green"]}, ["Red", "Green"]),
        ({"enum": ["r", "g", "b"], "enumNames": ["Red", 5]}, ["Red", "g", "b"]),
        (
            {"enum": ["", " ", None, 1.5, {"a": 1}]},
            ['(empty text) ("")', '(empty text) (" ")', "null", "1.5", '{"a":1}'],
        ),
        ({"enum": [1, "1"]}, ["1 (1)", '1 ("1")']),
        ({"oneOf": [{"const": "a", "title": "X"}, {"const": "b", "title": "X"}]}, ['X ("a")', 'X ("b")']),
        ({"oneOf": [{"const": "a"}, {"const": 2}]}, ["a", "2"]),
    ],
)
def test_options_have_labels_that_can_be_told_apart(schema: Any, labels: list[str]) -> None:
    assert [option.label for option in only(schema).options] == labels


@pytest.mark.parametrize(
    ("schema", "hints"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 5}, ("Between 2 and 5 characters.",)),
        ({"type": "string", "minLength": 1}, ("At least 1 character.",)),
        ({"type": "string", "minLength": 4, "maxLength": 4}, ("Exactly 4 characters.",)),
        ({"type": "string", "pattern": "^a$"}, ("Must match the pattern ^a$",)),
        ({"type": "string", "format": "uuid"}, ("Format: uuid.",)),
        ({"type": "integer", "minimum": 1, "maximum": 9}, ("A whole number.", "Between 1 and 9.")),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, ("More than 0.", "Less than 1.")),
        ({"type": "number", "multipleOf": 0.5}, ("In steps of 0.5.",)),
        (
            {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 2},
            ("Choose between 1 and 2.",),
        ),
    ],
)
def test_bounds_are_said_in_words(schema: Any, hints: tuple[str, ...]) -> None:
    assert only(schema).hints == hints


def test_a_default_is_taken_if_the_schema_accepts_it() -> None:
    good = only({"type": "string", "minLength": 2, "default": "ab"})
    bad = only({"type": "string", "minLength": 2, "default": "a"})
    assert (good.has_default, good.default) == (True, "ab")
    assert not bad.has_default


def test_a_default_of_false_or_zero_or_null_is_told_from_no_default() -> None:
    assert only({"type": "boolean", "default": False}).has_default
    assert only({"type": "integer", "default": 0}).has_default
    assert not only({"type": ["integer", "null"], "default": None}).has_default


def test_a_bad_default_does_not_spoil_the_good_one_beside_it() -> None:
    fields = form_fields(
        {"properties": {"a": {"type": "integer", "default": "x"}, "b": {"type": "integer", "default": 2}}}
    )
    assert [field.has_default for field in fields] == [False, True]


def test_a_default_that_an_input_would_change_or_hide_gets_a_field_that_keeps_it() -> None:
    assert only({"type": "string", "default": "a\nb"}).kind is FieldKind.TEXT
    assert only({"type": "string", "default": "a\u202eb"}).kind is FieldKind.JSON
    assert only({"type": "string", "default": "a\rb"}).kind is FieldKind.JSON
    assert (
        only({"type": "string", "format": "date-time", "default": "1990-12-31T23:59:60Z"}).kind
        is FieldKind.JSON
    )


def test_a_reference_is_followed_and_words_beside_it_win() -> None:
    field = only(
        {"$ref": "#/$defs/a~1b%20c", "title": "Mine"},
        **{"$defs": {"a/b c": {"$ref": "#/$defs/x"}, "x": {"enum": [1], "title": "Theirs"}}},
    )
    assert (field.kind, field.label) == (FieldKind.CHOICE, "Mine")


def test_a_reference_at_the_top_is_followed() -> None:
    schema = {
        "$ref": "#/$defs/form",
        "$defs": {"form": {"properties": {"a": {"$ref": "#/$defs/n"}}}, "n": {"type": "integer"}},
    }
    assert [field.kind for field in form_fields(schema)] == [FieldKind.INTEGER]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_schema_without_properties_asks_nothing(schema: Any) -> None:
    assert form_fields(schema) == ()


def test_a_required_name_without_a_description_is_asked_for_as_json() -> None:
    [field] = form_fields({"type": "object", "required": ["x"]})
    assert (field.name, field.kind, field.required) == ("x", FieldKind.JSON, True)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "array", "items": {}},
        {"enum": [{}]},
        {"properties": {"a": {}}, "anyOf": [{}]},
        {"properties": {"a": {}}, "if": {}},
        {"properties": {"a": {}}, "patternProperties": {"x": {}}},
        {"properties": {"a": {}}, "minProperties": 2},
        {"additionalProperties": {"type": "string"}},
        {"$ref": "#"},
        {"properties": {f"p{n}": {} for n in range(101)}},
        {"properties": []},
        {"required": 5},
        True,
        None,
        [],
        "object",
    ],
)
def test_what_is_no_plain_object_is_asked_for_as_one_json_text(schema: Any) -> None:
    [field] = form_fields(schema)
    assert (field.name, field.kind) == (None, FieldKind.JSON)
    assert field.reason


def test_the_editor_shows_the_arguments_and_fills_in_no_defaults() -> None:
    schema = {"properties": {"a": {"type": "string", "default": "x"}, "b": {"type": "integer", "default": 1}}}
    fields, current = editing_fields(schema, {"b": 5, "c": None})
    assert [(field.html_name, field.has_default) for field in fields] == [
        ("f0", False),
        ("f1", False),
        ("other", False),
    ]
    assert current == {"f1": 5, "other": {"c": None}}


def test_the_editor_shows_a_misfit_as_json_rather_than_changing_it() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}, "c": {"type": "string"}}}
    fields, _ = editing_fields(schema, {"a": "five", "b": "y", "c": None})
    assert [field.kind for field in fields] == [FieldKind.JSON] * 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "$ref",
        "enum",
        "enumNames",
        "oneOf",
        "anyOf",
        "allOf",
        "items",
        "required",
        "title",
        "description",
        "default",
        "const",
        "minLength",
        "maxLength",
        "minItems",
        "minProperties",
        "additionalProperties",
        "format",
        "pattern",
    ]
)
VALUES = JSON | st.sampled_from(
    ["string", "array", "object", ["string", "null"], "#", "#/properties/a", "email"]
)
PARTS = st.dictionaries(WORDS, VALUES | st.lists(st.dictionaries(WORDS, VALUES, max_size=2), max_size=2))


@settings(max_examples=150, deadline=None)
@given(
    JSON | PARTS | st.fixed_dictionaries({"properties": st.dictionaries(st.text(max_size=3), PARTS | JSON)})
)
def test_no_schema_whatever_makes_reading_it_fail(schema: Any) -> None:
    fields = form_fields(schema)
    assert len({field.html_name for field in fields}) == len(fields)
    editing_fields(schema, {"a": schema, "b": None})
