"""Hostile schemas, patterns and values cost a bounded amount of work and are refused, never passed."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from runs.schema_check import SchemaProblem, check_schema, patterns, validate
from runs.schema_check.pattern_cost import UNBOUNDED, worst_case_steps

EVIL = "^(a+)+$"
EVIL_TEXT = "a" * 40 + "b"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_kwargs: Any) -> None:
        pytest.fail("A schema made the product use the network.")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_remote_reference_is_refused_without_any_traffic() -> None:
    with pytest.raises(SchemaProblem):
        check_schema({"properties": {"a": {"$ref": "https://example.org/a.json"}}})


def test_a_pattern_that_backtracks_without_end_is_given_up_and_the_value_refused() -> None:
    started = time.monotonic()
    errors = validate({"properties": {"a": {"pattern": EVIL}}}, {"a": EVIL_TEXT})
    assert [error.validator for error in errors] == ["limit"]
    assert time.monotonic() - started < 2 * patterns.CHILD_WALL_SECONDS


def test_giving_up_inside_a_negation_does_not_let_the_value_pass() -> None:
    assert [error.validator for error in validate({"not": {"pattern": EVIL}}, EVIL_TEXT)] == ["limit"]


def test_a_pattern_that_could_be_slow_still_gets_its_right_answer() -> None:
    schema = {"pattern": "^([a-z]+-)*[a-z]+$"}
    assert validate(schema, "ab-cd-e") == []
    assert [error.validator for error in validate(schema, "ab--e")] == ["pattern"]


def test_a_text_too_long_for_its_pattern_is_refused() -> None:
    errors = validate({"pattern": "^a"}, "a" * (patterns.MAX_TEXT_CHARS + 1))
    assert [error.validator for error in errors] == ["limit"]


def test_a_pattern_that_is_too_long_is_no_usable_schema() -> None:
    with pytest.raises(SchemaProblem, match="longer"):
        check_schema({"pattern": "a" * (patterns.MAX_PATTERN_CHARS + 1)})


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a|a)*",
        "((a*)b?)*",
        "(?:a{1,9}){2}",
        "(a)\\1*",
        "a{9999}",
        "(x+x+)+y",
        "(?<n>a*)*",
        "([a-z]+)*",
    ],
)
def test_patterns_of_exponential_shape_are_left_to_a_child_process(pattern: str) -> None:
    assert worst_case_steps(pattern, 10) == UNBOUNDED


@pytest.mark.parametrize(
    "pattern",
    ["^[A-Z]{3}-\\d{4}$", "^a?b?c$", "[)+*]", "\\(\\+\\)", "^(?:ab|cd)$", "^\\p{L}+$", "^(?:abc){2,3}$"],
)
def test_ordinary_patterns_are_matched_at_once(pattern: str) -> None:
    assert worst_case_steps(pattern, 100) <= patterns.MAX_STEPS_IN_PROCESS


def test_several_loops_in_a_row_become_expensive_with_the_length_of_the_text() -> None:
    pattern = "^a*a*a*a*b$"
    assert worst_case_steps(pattern, 5) <= patterns.MAX_STEPS_IN_PROCESS < worst_case_steps(pattern, 500)


def test_references_that_multiply_work_are_given_up() -> None:
    chain: dict[str, Any] = {
        f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(40)
    }
    schema = {"$defs": {**chain, "a40": {"type": "string"}}, "$ref": "#/$defs/a0"}
    assert [error.validator for error in validate(schema, 1)] == ["limit"]


def test_a_schema_of_unreasonable_size_is_refused() -> None:
    with pytest.raises(SchemaProblem, match="longer"):
        check_schema({"description": "x" * 300_000})


def test_a_schema_nested_beyond_reason_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(50_000):
        schema = {"items": schema}
    with pytest.raises(SchemaProblem, match="nested"):
        check_schema(schema)


def test_a_value_of_unreasonable_size_is_refused() -> None:
    assert [error.validator for error in validate({}, {"a": "x" * 2_000_000})] == ["json"]


def test_a_value_with_too_many_digits_is_refused() -> None:
    assert [error.validator for error in validate({}, {"a": 10**5000})] == ["json"]


def test_a_long_list_of_unique_entries_is_checked_in_linear_time() -> None:
    assert validate({"uniqueItems": True}, [{"n": n} for n in range(20_000)]) == []


def test_only_so_many_errors_are_reported() -> None:
    assert len(validate({"items": {"type": "string"}}, [1] * 1_000)) == 200
