"""Diagnostic copies carry no secrets (C44, C45)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.redaction import MASK, is_secret_name, redact


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "access_token",
        "accessToken",
        "secret",
        "clientSecretValue",
        "password",
        "db_password_hash",
        "PASSWD",
        "authorization",
        "X-Authorization",
        "api-key",
        "X-Api-Key",
        "apiKey",
        "APIKEY2",
        "private_key",
        "set-cookie",
        "user credentials",
        "auth",
        "auth_header",
        "card_cvv",
        "OTP",
    ],
)
def test_secret_names_are_known_also_as_a_part_of_a_longer_key(key: str) -> None:
    assert is_secret_name(key)
    assert redact({"outer": [{key: {"any": "value"}}]}) == {"outer": [{key: MASK}]}


@pytest.mark.parametrize(
    "key", ["author", "city", "monkey", "keyboard", "opinion", "spinner", "street", "key", ""]
)
def test_ordinary_keys_keep_their_values(key: str) -> None:
    assert redact({key: "value"}) == {key: "value"}


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("https://user:pw@host/x", f"https://{MASK}@host/x"),
        ("https://tok@host", f"https://{MASK}@host"),
        ("https://u@v@host/x@y", f"https://{MASK}@host/x@y"),
        ("https://h/?a=1&access_token=zz&b=2", f"https://h/?a=1&access_token={MASK}&b=2"),
        ("https://h/?api%5Fkey=zz", f"https://h/?api%5Fkey={MASK}"),
        ("https://h/cb?code=1#id_token=zz&x=1", f"https://h/cb?code={MASK}#id_token={MASK}&x=1"),
        ("see postgres://a:b@db/x, please", f"see postgres://{MASK}@db/x, please"),
        ("https://h/?q=token", "https://h/?q=token"),
        ("write to a@b.example", "write to a@b.example"),
    ],
)
def test_userinfo_and_secret_parameters_of_urls_are_masked_anywhere_in_a_text(text: str, masked: str) -> None:
    assert redact({"note": text}) == {"note": masked}


def test_nesting_beyond_any_real_value_is_masked_whole() -> None:
    value: Any = "secret-looking"
    for _ in range(5_000):
        value = [value]
    assert "secret-looking" not in json.dumps(redact(value))


def test_other_values_keep_their_types() -> None:
    value = {"n": 1, "f": 1.0, "b": False, "none": None, "list": [1, "x"], "big": 2**70}
    assert redact(value) == value


secrets_inside = st.recursive(
    st.just("https://u:hunter2@h/?token=hunter2") | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "password", "b"]), inner | st.just("hunter2-"), max_size=3)
    ),
    max_leaves=10,
)


@given(secrets_inside)
def test_the_input_stays_as_it_was(value: Any) -> None:
    before = copy.deepcopy(value)
    masked = redact(value)
    assert value == before
    assert "hunter2@" not in json.dumps(masked)
    assert "token=hunter2" not in json.dumps(masked)
