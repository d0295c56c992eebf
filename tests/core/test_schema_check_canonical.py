"""Canonical JSON: equal values have one text, different values have two."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.canonical import NotJson, canonical_json, digest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_keys_are_sorted_and_nothing_is_escaped_without_need() -> None:
    assert canonical_json({"b": [1, True, None], "a": "é\n"}) == '{"a":"é\\n","b":[1,true,null]}'


def test_one_and_one_point_zero_differ() -> None:
    assert canonical_json(1) != canonical_json(1.0)
    assert digest({"a": 1}) != digest({"a": 1.0})


def test_true_and_one_differ() -> None:
    assert digest([True]) != digest([1])


def test_integers_are_exact_at_any_size() -> None:
    assert canonical_json(2**53 + 1) == "9007199254740993"
    assert canonical_json(10**5000 + 7) == "1" + "0" * 4999 + "7"


def test_a_digest_names_its_algorithm() -> None:
    assert digest({}) == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_mappings_and_tuples_count_as_objects_and_arrays() -> None:
    assert canonical_json(MappingProxyType({"a": (1, 2)})) == '{"a":[1,2]}'


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), ()),
        ([1, float("inf")], (1,)),
        ({"a": {1: 2}}, ("a",)),
        ({"a": "\ud800"}, ("a",)),
        ({"a": [object()]}, ("a", 0)),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(value: object, path: tuple[str | int, ...]) -> None:
    with pytest.raises(NotJson) as refused:
        canonical_json(value)
    assert refused.value.path == path


def test_deep_nesting_is_refused_and_does_not_exhaust_the_stack() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotJson):
        canonical_json(value)


@given(JSON)
def test_the_text_reads_back_as_the_value(value: object) -> None:
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text
