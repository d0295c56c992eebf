"""Exact keys, round numbers and idempotency of a submission (C10, C13, C20, C21, A21)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.errors import ManagedInputValidationError
from runs.round_states import Replay, check_index, check_keys, replay

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_exactly_the_requested_keys_are_accepted_in_any_order() -> None:
    check_keys(["a", "b"], ["b", "a"])


def test_missing_and_unknown_keys_are_named_in_the_sentence_and_in_the_details() -> None:
    with pytest.raises(ManagedInputValidationError) as refused:
        check_keys(["a", "b", "c"], ["b", "z"])
    assert refused.value.details == {"missing": ["a", "c"], "unknown": ["z"]}
    assert "missing: a, c" in refused.value.message
    assert "unknown: z" in refused.value.message


@pytest.mark.parametrize(("index", "limit"), [(0, 1), (9, 10)])
def test_a_round_number_below_its_limit_is_accepted(index: int, limit: int) -> None:
    check_index(index, limit)


@pytest.mark.parametrize(
    ("index", "limit"),
    [(-1, 10), (10, 10), (0, 0), (True, 10), (0, True), (0.0, 10), (0, 10.0), ("0", 10), (None, 10)],
)
def test_a_round_number_outside_its_limit_or_of_another_type_is_refused(index: object, limit: object) -> None:
    with pytest.raises(ManagedInputValidationError, match="round_"):
        check_index(index, limit)


def test_a_first_submission_is_new() -> None:
    assert replay(None, None, "k", {"a": 1}) is Replay.NEW


def test_the_order_of_keys_does_not_make_a_submission_different() -> None:
    assert replay("k", {"a": 1, "b": {"c": 2, "d": 3}}, "k", {"b": {"d": 3, "c": 2}, "a": 1}) is Replay.SAME


@pytest.mark.parametrize("other", [{"a": 1.0}, {"a": True}, {"a": "1"}, {"a": 1, "b": None}, {}, None])
def test_the_same_key_with_another_payload_conflicts(other: object) -> None:
    assert replay("k", {"a": 1}, "k", other) is Replay.CONFLICT


def test_another_key_with_the_same_payload_conflicts() -> None:
    assert replay("k", {"a": 1}, "other", {"a": 1}) is Replay.CONFLICT


@given(json_values)
def test_repeating_any_submission_is_the_same_submission(payload: object) -> None:
    assert replay("k", payload, "k", payload) is Replay.SAME
