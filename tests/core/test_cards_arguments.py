"""The arguments of a call as a card shows them: complete, comparable, nothing hidden (R11, R13)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.cards.arguments import arguments_table, shown

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_nested_arguments_are_flattened_by_one_level() -> None:
    table = arguments_table({"customer": {"id": 7, "address": {"city": "Bonn"}}, "tags": ["a"], "empty": {}})
    assert [(row.name, row.text) for row in table.rows] == [
        ("customer › id", "7"),
        ("customer › address", '{"city":"Bonn"}'),
        ("tags", '["a"]'),
        ("empty", "{}"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Bonn", "Bonn"),
        ("1042", '"1042"'),
        (1042, "1042"),
        ("", '""'),
        ("true", '"true"'),
        (" a", '" a"'),
        (None, "null"),
    ],
)
def test_text_that_could_be_something_else_stands_in_quotes(value: Any, text: str) -> None:
    assert shown(value) == text


def test_what_changed_since_the_last_allowed_call_is_marked() -> None:
    table = arguments_table({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 1, "gone": True})
    assert [(row.name, row.was, row.new) for row in table.rows] == [
        ("a", None, False),
        ("b", "1", False),
        ("c", None, True),
    ]
    assert [(row.name, row.text) for row in table.gone] == [("gone", "true")]


@pytest.mark.parametrize(("now", "before"), [(1, 1.0), (1, True), ("1", 1)])
def test_values_that_differ_only_in_type_count_as_changed(now: Any, before: Any) -> None:
    [row] = arguments_table({"a": now}, {"a": before}).rows
    assert row.marked


def test_without_an_earlier_call_nothing_is_marked() -> None:
    table = arguments_table({"a": 1})
    assert not table.compared
    assert not table.rows[0].marked


@pytest.mark.parametrize("arguments", [{"a": "x\u202ey"}, {"a\u200b": 1}, {"a": ["\u2066"]}])
def test_hidden_characters_are_written_out_and_their_argument_is_named(arguments: dict[str, Any]) -> None:
    table = arguments_table(arguments)
    assert len(table.hidden_names) == 1
    assert "⟨U+" in table.rows[0].name + table.rows[0].text


def test_long_arguments_are_shown_complete_in_a_block() -> None:
    [row] = arguments_table({"body": "word " * 5000 + "end"}).rows
    assert row.block
    assert row.text.endswith("end")
    assert len(row.text) == 25_003


@given(st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=4))
def test_every_value_of_every_argument_is_on_the_card(arguments: dict[str, Any]) -> None:
    table = arguments_table(arguments, arguments)
    leaves = sum(len(value) if isinstance(value, dict) and value else 1 for value in arguments.values())
    assert len(table.rows) == leaves
    assert not any(row.marked for row in table.rows)
    if "⟨U+" not in table.raw:  # written-out characters are for the eye and are no JSON any more
        assert json.loads(table.raw) == arguments
