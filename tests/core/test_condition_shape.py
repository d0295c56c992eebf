"""The stored form of a condition: read strictly, one digest per condition, bounded, and complete in its sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.condition_shape import (
    MAX_TESTS,
    TESTED,
    check_for,
    condition_digest,
    condition_words,
    match_key,
    match_keys,
    parse_condition,
    read_condition,
    stored_condition,
)
from approvals.conditions import ArgumentTest, Condition, TestKind, condition_holds, exactly
from approvals.facts import Effect
from runs.errors import ModelValidationError

TO_ANN = ArgumentTest(path=("to",), value="ann@example.com")
TO_US = ArgumentTest(path=("to",), value="*@example.com", kind=TestKind.GLOB)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab*é", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab ", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
objects = st.dictionaries(st.text("ab ", max_size=3), json_values, max_size=3)
tests = st.builds(
    ArgumentTest,
    path=st.lists(st.text("ab", max_size=2) | st.integers(0, 3), min_size=1, max_size=3).map(tuple),
    value=json_values,
) | st.builds(
    ArgumentTest, path=st.just(("a",)), value=st.text("a*?", max_size=5), kind=st.just(TestKind.GLOB)
)
conditions = st.lists(tests, max_size=4).map(tuple) | objects.map(exactly)


@given(conditions, objects)
def test_what_is_stored_is_read_back_as_a_condition_that_holds_for_the_same_calls(
    condition: Condition, arguments: dict[str, Any]
) -> None:
    again = read_condition(stored_condition(condition))
    assert again == parse_condition(stored_condition(condition))
    assert condition_holds(again, arguments) == condition_holds(condition, arguments)
    assert condition_digest(again) == condition_digest(condition)


@given(conditions, objects)
def test_every_rule_that_is_about_a_call_is_found_by_the_calls_match_keys(
    condition: Condition, arguments: dict[str, Any]
) -> None:
    if condition_holds(condition, arguments):
        assert match_key(condition) in match_keys(arguments)


@given(objects, objects)
def test_exactly_these_arguments_hold_only_for_calls_whose_match_keys_name_them(
    wanted: dict[str, Any], arguments: dict[str, Any]
) -> None:
    assert condition_holds(exactly(wanted), arguments) is (
        match_key(exactly(wanted)) in match_keys(arguments)
    )


@given(st.lists(tests, min_size=1, max_size=4), st.randoms())
def test_the_order_of_tests_and_their_repetition_make_no_other_condition(
    listed: list[ArgumentTest], random: Any
) -> None:
    shuffled = [*listed, listed[0]]
    random.shuffle(shuffled)
    assert condition_digest(tuple(shuffled)) == condition_digest(tuple(listed))


def test_no_condition_is_null_and_has_no_digest() -> None:
    assert stored_condition(()) is None
    assert (condition_digest(()), match_key(()), condition_words(())) == ("", "", "")


def test_one_and_one_point_zero_are_different_conditions() -> None:
    assert condition_digest(exactly({"amount": 1})) != condition_digest(exactly({"amount": 1.0}))


def test_a_literal_and_a_pattern_of_the_same_text_are_different_conditions() -> None:
    literal = ArgumentTest(path=("to",), value="*@example.com")
    assert condition_digest((literal,)) != condition_digest((TO_US,))


@pytest.mark.parametrize(
    "stored",
    [
        "x",
        [],
        {},
        {"version": 1},
        {"version": 2, "tests": [{"path": ["to"], "kind": "equals", "value": 1}]},
        {"version": True, "tests": [{"path": ["to"], "kind": "equals", "value": 1}]},
        {"version": 1, "tests": []},
        {"version": 1, "tests": {}},
        {"version": 1, "tests": ["to"]},
        {"version": 1, "tests": [{"path": ["to"], "value": 1}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": "equals", "value": 1, "not": True}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": "regex", "value": "a"}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": ["glob"], "value": "a"}]},
        {"version": 1, "tests": [{"path": "to", "kind": "equals", "value": 1}]},
        {"version": 1, "tests": [{"path": [True], "kind": "equals", "value": 1}]},
        {"version": 1, "tests": [{"path": [-1], "kind": "equals", "value": 1}]},
        {"version": 1, "tests": [{"path": ["a"] * 11, "kind": "equals", "value": 1}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": "glob", "value": 5}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": "glob", "value": "x" * 201}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": "equals", "value": float("nan")}]},
        {"version": 1, "tests": [{"path": ["to"], "kind": "equals", "value": "x" * 4000}]},
        {
            "version": 1,
            "tests": [{"path": ["to"], "kind": "equals", "value": n} for n in range(MAX_TESTS + 1)],
        },
    ],
)
def test_what_is_no_condition_is_refused_with_a_sentence(stored: Any) -> None:
    with pytest.raises(ModelValidationError) as refused:
        parse_condition(stored)
    assert refused.value.message.rstrip()[-1] in ".}"


@pytest.mark.parametrize("path", [("to",), ("customer", "email")])
def test_an_allow_may_test_what_the_card_shows_as_a_line_of_its_own(path: tuple[str, ...]) -> None:
    check_for(Effect.ALLOW, (ArgumentTest(path=path, value=1),))
    check_for(Effect.ALLOW, exactly({"to": {"deep": {"er": 1}}}))


@pytest.mark.parametrize("path", [("rows", 0), ("rows", 0, "n"), ("a", "b", "c"), (0,)])
def test_an_allow_may_not_test_a_part_of_a_line_but_deny_and_ask_may(path: tuple[str | int, ...]) -> None:
    condition = (ArgumentTest(path=path, value=1),)
    with pytest.raises(ModelValidationError, match="only a part"):
        check_for(Effect.ALLOW, condition)
    check_for(Effect.DENY, condition)
    check_for(Effect.ASK, condition)


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize(
    "test",
    [
        ArgumentTest(path=(), value="*", kind=TestKind.GLOB),
        ArgumentTest(path=(), value=[1]),
        ArgumentTest(path=(), value=None),
    ],
)
def test_all_arguments_together_are_compared_with_an_object_only(effect: Effect, test: ArgumentTest) -> None:
    with pytest.raises(ModelValidationError, match="an object"):
        check_for(effect, (test,))


def test_the_words_name_every_test_in_full() -> None:
    odd = ArgumentTest(path=("a key", "b"), value={"x": [1, None]})
    deep = ArgumentTest(path=("rows", 1), value=2.0)
    assert condition_words((TO_US,)) == ' where to matches "*@example.com"'
    assert condition_words((TO_ANN, deep)) == ' where to is "ann@example.com" and rows › [1] is 2.0'
    assert condition_words((odd,)) == ' where "a key" › b is {"x":[1,null]}'
    assert condition_words(exactly({"b": 1, "a": "*"})) == ' with exactly the arguments {"a":"*","b":1}'
    assert condition_words(exactly({})) == " without any arguments"


def test_hidden_characters_in_names_and_values_are_written_out() -> None:
    words = condition_words((ArgumentTest(path=("to\u202e",), value="ann\u200b"),))
    assert not {"\u202e", "\u200b"} & set(words)
    assert "U+202E" in words


def test_a_condition_of_several_tests_has_to_be_tried() -> None:
    assert match_key((TO_ANN,)) == match_key((TO_ANN, TO_US)) == TESTED


def test_arguments_that_are_no_json_are_matched_by_rules_without_exact_ones() -> None:
    assert match_keys({"x": float("nan")}) == ["", TESTED]
