"""Argument conditions: literals are literal, only typed patterns have wildcards (R26)."""

from __future__ import annotations

import fnmatch
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.conditions import ArgumentTest, TestKind, condition_holds, exactly

ARGUMENTS = {"to": {"email": "ann@example.com"}, "rows": [{"n": 1}, {"n": 2}], "note": "a*c", "none": None}


def holds(path: tuple[str | int, ...], value: Any, kind: TestKind = TestKind.EQUALS) -> bool:
    return ArgumentTest(path=path, value=value, kind=kind).holds(ARGUMENTS)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("to", "email"), "ann@example.com", True),
        (("rows", 1, "n"), 2, True),
        (("rows", 1, "n"), 2.0, False),
        (("rows", 1, "n"), True, False),
        (("rows",), [{"n": 1}, {"n": 2}], True),
        (("none",), None, True),
        (("missing",), None, False),
        (("rows", 2), None, False),
        (("rows", -1), {"n": 2}, False),
        (("rows", "1"), {"n": 2}, False),
        (("note", 0), "a", False),
        (("note",), "a*c", True),
        (("note",), "abc", False),
    ],
)
def test_a_literal_matches_exactly_that_value_at_that_place(
    path: tuple[str | int, ...], value: Any, expected: bool
) -> None:
    assert holds(path, value) is expected


def test_the_remembered_arguments_match_whatever_the_order_of_their_keys() -> None:
    condition = exactly({"a": 1, "b": [1, 2]})
    assert condition_holds(condition, {"b": [1, 2], "a": 1})
    assert not condition_holds(condition, {"a": 1, "b": [2, 1]})
    assert not condition_holds(condition, {"a": 1, "b": [1, 2], "c": None})


def test_a_star_in_remembered_arguments_is_a_star() -> None:
    assert not condition_holds(exactly({"path": "*"}), {"path": "/etc/passwd"})


def test_all_tests_of_a_condition_must_hold_and_none_means_every_call() -> None:
    email = ArgumentTest(path=("to", "email"), value="*@example.com", kind=TestKind.GLOB)
    note = ArgumentTest(path=("note",), value="other")
    assert condition_holds((email,), ARGUMENTS)
    assert not condition_holds((email, note), ARGUMENTS)
    assert condition_holds((), ARGUMENTS)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("*@example.com", "ann@example.com", True),
        ("*@example.com", "ann@example.com.evil", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[ab]", "a", False),
        ("A", "a", False),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
        ("a*b*c", "a1b2b3c\n", False),
        ("a*c", "a\nc", True),
    ],
)
def test_a_pattern_matches_the_whole_text(pattern: str, text: str, expected: bool) -> None:
    test = ArgumentTest(path=("x",), value=pattern, kind=TestKind.GLOB)
    assert test.holds({"x": text}) is expected


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_patterns_agree_with_shell_patterns(pattern: str, text: str) -> None:
    test = ArgumentTest(path=("x",), value=pattern, kind=TestKind.GLOB)
    assert test.holds({"x": text}) is bool(re.fullmatch(fnmatch.translate(pattern), text))


def test_a_pattern_never_matches_what_is_not_text() -> None:
    assert not holds(("rows", 0, "n"), "*", TestKind.GLOB)
    assert not holds(("none",), "*", TestKind.GLOB)


@pytest.mark.parametrize("value", [None, 5, "x" * 201])
def test_a_pattern_is_bounded_text(value: Any) -> None:
    with pytest.raises(ValueError, match="at most 200"):
        ArgumentTest(path=("x",), value=value, kind=TestKind.GLOB)


@pytest.mark.timeout(10)
def test_a_hostile_pattern_and_text_take_bounded_time() -> None:
    test = ArgumentTest(path=("x",), value="*a" * 100, kind=TestKind.GLOB)
    assert test.holds({"x": "a" * 20_000 + "b"}) is False
