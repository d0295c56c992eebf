"""A condition is typed as a path and a value, and what is shown again is read as the same (R26)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.condition_text import path_text, typed_path, typed_value, value_text
from approvals.conditions import ArgumentTest, TestKind
from runs.errors import ModelValidationError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
STEPS = st.lists(st.text(max_size=6) | st.integers(0, 999), max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("to", ("to",)),
        (" customer.email ", ("customer", "email")),
        ("rows[0].to", ("rows", 0, "to")),
        ("[2][3]", (2, 3)),
        ('"a.b".c', ("a.b", "c")),
        ('""', ("",)),
        ("first name", ("first name",)),
    ],
)
def test_a_path_is_keys_with_dots_and_positions_in_brackets(text: str, path: tuple[Any, ...]) -> None:
    assert typed_path(text) == path


@pytest.mark.parametrize("text", [".", "a.", "a..b", "a[x]", "a[-1]", 'a"b', '"open', '"bad\\q"', "a[1]b"])
def test_a_path_that_cannot_be_read_says_from_where(text: str) -> None:
    with pytest.raises(ModelValidationError, match="Write it like"):
        typed_path(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50", 50),
        ("true", True),
        ("null", None),
        ('"50"', "50"),
        ("ann@example.com", "ann@example.com"),
        ("1,5", "1,5"),
        ('{"a": [1]}', {"a": [1]}),
        ("NaN", "NaN"),
    ],
)
def test_a_value_is_json_where_it_is_json_else_text(text: str, value: Any) -> None:
    assert typed_value(TestKind.EQUALS, text) == value


@pytest.mark.parametrize("text", ['{"a": 1', "[1,", '"open', '{"a": 1, "a": 2}'])
def test_what_begins_like_json_and_is_none_is_a_mistake_and_no_text(text: str) -> None:
    with pytest.raises(ModelValidationError, match="begins like JSON"):
        typed_value(TestKind.EQUALS, text)


def test_a_pattern_is_never_json() -> None:
    assert typed_value(TestKind.GLOB, "[1]*") == "[1]*"


@given(path=STEPS)
def test_a_path_that_is_shown_is_read_as_the_same(path: tuple[str | int, ...]) -> None:
    assert typed_path(path_text(path)) == path


@given(value=JSON)
def test_a_value_that_is_shown_is_read_as_the_same(value: Any) -> None:
    shown = value_text(ArgumentTest(path=("x",), value=value))
    assert typed_value(TestKind.EQUALS, shown) == value
    assert type(typed_value(TestKind.EQUALS, shown)) is type(value)
