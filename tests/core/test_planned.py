"""Which predefined answer fits what is asked, decided without any row."""

from __future__ import annotations

from typing import Any

import pytest

from runs import planned

SCHEMA = {"type": "object", "properties": {"street": {"type": "string"}}}
FORM = {"mode": "form", "message": "Where to [now]?", "requested_schema": SCHEMA}
URL = {"mode": "url", "message": "Agree", "url": "https://parcels.example/terms"}
ACCEPT = {"action": "accept"}


def choose(*matches: dict[str, str], requests: Any = None) -> dict[str, int] | None:
    plan = [planned.entry(match, ACCEPT) for match in matches]
    return planned.choose(plan, requests or {"address": FORM}, server="parcels", operation="book")


@pytest.mark.parametrize(
    "match",
    [
        {},
        {"message": "Where to*"},
        {"message": "Where to [[]now]?"},
        {"key": "address"},
        {"server": "parcels", "operation": "book"},
        {"schema_digest": planned.schema_digest(SCHEMA)},
    ],
)
def test_what_is_left_out_fits_everything_and_the_rest_must_fit(match: dict[str, str]) -> None:
    assert choose(match) == {"address": 0}


@pytest.mark.parametrize(
    "match",
    [
        {"message": "Where"},
        {"message": "where to*"},
        {"message": "Where to [now]?"},
        {"key": "*"},
        {"server": "parcel"},
        {"operation": "book", "key": "other"},
        {"schema_digest": planned.schema_digest({})},
    ],
)
def test_what_differs_in_one_thing_does_not_fit(match: dict[str, str]) -> None:
    assert choose(match) is None


def test_wildcards_are_for_messages_alone() -> None:
    assert choose({"operation": "bo?k"}) is None


def test_the_first_that_fits_is_taken_each_for_one_request() -> None:
    assert choose({"key": "terms"}, {}, {}, requests={"address": FORM, "terms": URL}) == {
        "address": 1,
        "terms": 0,
    }
    assert choose({}, requests={"address": FORM, "terms": URL}) is None


def test_a_round_is_answered_as_a_whole_or_not_at_all() -> None:
    assert choose({"key": "address"}, {"key": "other"}, requests={"address": FORM, "terms": URL}) is None


def test_an_entry_that_was_used_is_not_used_again() -> None:
    plan = [{**planned.entry({}, ACCEPT), "used": "r1"}, planned.entry({}, ACCEPT)]
    assert planned.choose(plan, {"address": FORM}, server="parcels", operation="book") == {"address": 1}


def test_a_page_has_no_schema_to_be_matched_by() -> None:
    assert choose({"schema_digest": planned.schema_digest({})}, requests={"terms": URL}) is None
