"""The one validator: what is accepted, and how a refusal is worded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.schema_check import FieldError, SchemaProblem, check_schema, validate


def keywords(schema: Any, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
    return [(error.path, error.validator) for error in validate(schema, value)]


def test_a_valid_value_has_no_errors() -> None:
    assert validate({"type": "object", "required": ["a"]}, {"a": 1, "extra": 2}) == []


def test_one_point_zero_satisfies_integer() -> None:
    assert validate({"type": "integer"}, 1.0) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_lacks_are_refused_even_by_a_schema_that_allows_all(value: float) -> None:
    assert keywords({}, {"x": [value]}) == [(("x", 0), "json")]


def test_a_missing_and_an_extra_property_are_named_by_their_own_path() -> None:
    schema = {"properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    assert sorted(keywords(schema, {"b": 1})) == [(("a",), "required"), (("b",), "additionalProperties")]


def test_a_property_that_is_never_allowed_is_named() -> None:
    assert validate({"properties": {"a": False}}, {"a": 1}) == [
        FieldError(("a",), "This is not asked for.", "additionalProperties")
    ]


def test_a_failed_alternative_says_what_would_fit() -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "string", "minLength": 3}, {"type": "null"}]}}}
    assert validate(schema, {"a": "x"}) == [
        FieldError(("a",), "Must have at least 3 characters; it has 1.", "minLength")
    ]


def test_money_is_a_multiple_of_a_cent() -> None:
    assert validate({"multipleOf": 0.01}, 19.99) == []
    assert keywords({"multipleOf": 0.01}, 19.999) == [((), "multipleOf")]


def test_one_and_true_are_different_entries_and_one_and_one_point_zero_are_not() -> None:
    assert validate({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}]) == []
    assert keywords({"uniqueItems": True}, [{"a": [1]}, {"a": [1.0]}]) == [((), "uniqueItems")]


def test_patterns_name_properties_with_the_semantics_of_ecma() -> None:
    schema = {"patternProperties": {"^\\p{Lu}$": {"type": "integer"}}, "additionalProperties": False}
    assert validate(schema, {"Ä": 1}) == []
    assert sorted(keywords(schema, {"Ä": "x", "ä": 1})) == [
        (("Ä",), "type"),
        (("ä",), "additionalProperties"),
    ]


def test_old_patterns_with_needless_escapes_still_work() -> None:
    assert validate({"pattern": "^\\d{3}\\-\\d{4}$"}, "123-4567") == []


def test_a_nul_character_is_refused_because_no_database_would_keep_it() -> None:
    assert keywords({}, {"a": ["x\0"]}) == [(("a", 0), "json")]
    assert validate({}, {"a": "\\u0000"}) == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "strnig"}, "unknown type at /type"),
        ({"properties": {"a": {"type": ["string", "nil"]}}}, "at /properties/a/type"),
        ({"pattern": "["}, "does not compile"),
        ({"patternProperties": {"(": {}}}, "does not compile"),
        ({"$ref": "#/$defs/missing"}, "not inside it"),
        ({"$ref": "https://example.org/schema.json"}, "not inside it"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "not inside it"),
        ({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, "not inside it"),
        ({"$ref": "file:///etc/passwd"}, "not inside it"),
        ({"$ref": "#"}, "circle"),
        ({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}}, "circle"),
        ({"x": {"type": "bad"}, "$ref": "#/x"}, "unknown type"),
        ({"x": [1], "$ref": "#/x"}, "no schema"),
        ({"minLength": -1}, "0 or more"),
        ({"required": "name"}, "Must be a list"),
        ({"items": [{}]}, "at /items"),
        ({"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#"}}}, "dialect"),
        ({"$id": "http://[", "properties": {"a": {"$ref": "x"}}}, "cannot be used"),
        ({"default": float("nan")}, "not JSON at /default"),
        ([], "is wrong"),
        (None, "is wrong"),
        ("object", "is wrong"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_schema_problem(schema: Any, words: str) -> None:
    with pytest.raises(SchemaProblem, match=words):
        check_schema(schema)
    with pytest.raises(SchemaProblem, match=words):
        validate(schema, {})


def test_a_schema_of_another_draft_is_read_as_2020_12() -> None:
    check_schema({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"})


def test_a_recursive_schema_is_fine() -> None:
    schema = {"type": "object", "properties": {"child": {"$ref": "#"}}}
    assert keywords(schema, {"child": {"child": 1}}) == [(("child", "child"), "type")]


def test_references_by_pointer_and_anchor_and_dynamic_anchor_work_inside_the_document() -> None:
    schema = {
        "$defs": {
            "a": {"$anchor": "word", "type": "string"},
            "b": {"$dynamicAnchor": "amount", "type": "integer"},
        },
        "properties": {
            "p": {"$ref": "#/$defs/a"},
            "q": {"$ref": "#word"},
            "r": {"$dynamicRef": "#amount"},
        },
    }
    assert keywords(schema, {"p": 1, "q": 1, "r": "x"}) == [
        (("p",), "type"),
        (("q",), "type"),
        (("r",), "type"),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
WORDS = st.sampled_from(
    [
        "type",
        "properties",
        "$ref",
        "$id",
        "$anchor",
        "enum",
        "oneOf",
        "anyOf",
        "allOf",
        "not",
        "if",
        "items",
        "pattern",
        "format",
        "required",
        "minimum",
        "minLength",
        "uniqueItems",
        "$defs",
        "patternProperties",
        "additionalProperties",
        "dependentRequired",
        "unevaluatedProperties",
        "multipleOf",
        "$schema",
        "const",
    ]
)
LEAVES = JSON | st.sampled_from(["string", "object", "#", "#/properties", "(", "email", "date-time", "a"])
SCHEMAS = st.recursive(
    st.dictionaries(WORDS, LEAVES, max_size=4) | st.booleans(),
    lambda inner: st.dictionaries(
        WORDS, inner | st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, JSON)
def test_no_schema_and_no_value_raises_anything_but_a_schema_problem(schema: Any, value: Any) -> None:
    try:
        errors = validate(schema, value)
    except SchemaProblem:
        return
    assert all(error.message and error.validator for error in errors)
