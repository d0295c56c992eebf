"""Time limits as people write them (A17)."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.durations import MAX_TIMEOUT, describe, parse_timeout
from runs.errors import ModelValidationError


@pytest.mark.parametrize(
    ("given_value", "seconds"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5_400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1w2d3h4m5s", 604_800 + 172_800 + 10_800 + 240 + 5),
        (300, 300),
        (0.2, 0.2),
        (timedelta(minutes=5), 300),
    ],
)
def test_every_way_to_write_a_limit_is_read(given_value: object, seconds: float) -> None:
    assert parse_timeout(given_value) == timedelta(seconds=seconds)


def test_null_means_no_limit() -> None:
    assert parse_timeout(None) is None


@pytest.mark.parametrize(
    "given_value",
    [
        "300",
        "-5s",
        "5mabc",
        "",
        " 5m",
        "5m\n",
        "5M",
        "1.5h",
        "30m1h",
        "5m5m",
        "٣s",
        "0s",
        "9" * 100 + "s",
        0,
        -1,
        0.0,
        1e-9,
        float("nan"),
        float("inf"),
        float("-inf"),
        10**400,
        10**5_000,
        True,
        False,
        timedelta(0),
        timedelta(seconds=-1),
        MAX_TIMEOUT + timedelta(seconds=1),
        "36501d",
        b"5m",
        Decimal(5),
        ["5m"],
        {},
    ],
    ids=lambda value: "huge" if value == 10**5_000 else f"{type(value).__name__} {value!r}"[:30],
)
def test_anything_else_is_refused_with_a_sentence_that_shows_how_to_write_it(given_value: object) -> None:
    with pytest.raises(ModelValidationError) as refused:
        parse_timeout(given_value)
    assert '"1h30m"' in refused.value.message
    assert len(refused.value.message) < 250


@given(st.text(alphabet="0123456789wdhms. -+", max_size=12))
def test_no_text_leads_to_anything_but_a_positive_limit_or_a_refusal(text: str) -> None:
    try:
        limit = parse_timeout(text)
    except ModelValidationError:
        return
    assert limit is not None
    assert timedelta(0) < limit <= MAX_TIMEOUT


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (None, "no time limit"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=90), "1 minute 30 seconds"),
        (timedelta(hours=1, minutes=30), "1 hour 30 minutes"),
        (timedelta(days=15, seconds=2), "2 weeks 1 day 2 seconds"),
        (timedelta(milliseconds=200), "0.2 seconds"),
        (timedelta(0), "0 seconds"),
    ],
)
def test_a_limit_is_said_back_in_words(limit: timedelta | None, words: str) -> None:
    assert describe(limit) == words


@pytest.mark.parametrize("text", ["90", "null", "soon", "0s", "9999w"])
def test_a_text_is_offered_only_what_a_text_can_say(text: str) -> None:
    with pytest.raises(ModelValidationError) as refused:
        parse_timeout(text)
    assert '"90s"' in refused.value.message
    assert "null waits" not in refused.value.message
    assert "counts seconds" not in refused.value.message
    for offered in re.findall(r'"([^"]+)"', refused.value.message.partition("Write it like")[2]):
        assert parse_timeout(offered) is not None
