"""From typed texts to content: what is sent, what is absent, what is refused and how."""

from __future__ import annotations

import json
from typing import Any

import pytest

from approvals.form_values import Reading, read, untouched
from approvals.schema_form import editing_fields, form_fields


def answer(schema: Any, *texts: str, required: bool = False, zone: str | None = None) -> Reading:
    """Post `texts` as the answer to the one property `p`."""
    whole = {"type": "object", "properties": {"p": schema}, **({"required": ["p"]} if required else {})}
    posted = {"f0": texts, **({"f0-zone": (zone,)} if zone is not None else {})}
    return read(whole, form_fields(whole), posted)


def sent(schema: Any, *texts: str, **how: Any) -> Any:
    reading = answer(schema, *texts, **how)
    assert reading.content is not None, reading
    return reading.content["p"]


def refusal(schema: Any, *texts: str, **how: Any) -> str:
    reading = answer(schema, *texts, **how)
    assert reading.content is None
    [message] = reading.errors["f0"]
    return message


KINDS = [
    {"type": "string"},
    {"type": "string", "maxLength": 1000},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "date-time"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"enum": ["a"]},
    {"type": "array", "items": {"enum": ["a"]}, "minItems": 1},
    {"type": "object"},
]


@pytest.mark.parametrize("schema", KINDS, ids=json.dumps)
def test_an_optional_field_that_is_empty_or_missing_is_absent(schema: Any) -> None:
    assert answer(schema).content == {}
    assert answer(schema, "").content == {}


@pytest.mark.parametrize("schema", KINDS[:-2] + KINDS[-1:], ids=json.dumps)
def test_a_required_field_that_is_empty_is_refused_as_required(schema: Any) -> None:
    assert refusal(schema, "", required=True, zone="UTC") == "This is required."


@pytest.mark.parametrize("text", ["9007199254740993", "-0", "123456789012345678901234567890"])
def test_integers_are_exact(text: str) -> None:
    value = sent({"type": "integer"}, text)
    assert value == int(text)
    assert type(value) is int


@pytest.mark.parametrize(("text", "value"), [("1.0", 1), ("1e3", 1000), (" 7 ", 7), ("120e-1", 12)])
def test_a_whole_number_may_be_written_in_any_way_that_json_has(text: str, value: int) -> None:
    assert sent({"type": "integer"}, text) == value


@pytest.mark.parametrize("text", ["1.5", "1e999999999", "1e-1", "1e-99999999999999999999"])
def test_what_is_no_whole_number_is_refused_as_integer(text: str) -> None:
    assert answer({"type": "integer"}, text).content is None


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "+5",
        ".5",
        "5.",
        "05",
        "1_000",
        "0x10",
        "٣",
        "1 000",
        "--1",
        "1e",
        "abc",
        "-",
    ],
)
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_only_the_grammar_of_json_makes_a_number(kind: str, text: str) -> None:
    assert "Enter a number in digits" in refusal({"type": kind}, text)


@pytest.mark.parametrize("text", ["1,5", "1,000", "1.000,00"])
def test_a_comma_is_refused_with_help(text: str) -> None:
    assert "Use a point for decimals" in refusal({"type": "number"}, text)


@pytest.mark.parametrize("text", ["1e999", "-1e309"])
def test_a_number_beyond_all_bounds_is_refused(text: str) -> None:
    assert "too large" in refusal({"type": "number"}, text)


def test_a_number_that_would_be_rounded_is_refused_with_the_nearest_one() -> None:
    assert "nearest that can is 0.1." in refusal({"type": "number"}, "0.1000000000000000000001")
    assert "nearest that can is 0.0." in refusal({"type": "number"}, "1e-999")
    assert sent({"type": "number"}, "0.10") == 0.1


def test_a_number_without_point_stays_an_exact_integer() -> None:
    value = sent({"type": "number"}, "9007199254740993")
    assert (value, type(value)) == (9007199254740993, int)


def test_spaces_are_kept_in_text_and_dropped_around_addresses() -> None:
    assert sent({"type": "string"}, "  a  ") == "  a  "
    assert sent({"type": "string"}, "   ") == "   "
    assert sent({"type": "string", "format": "email"}, " a@b.org ") == "a@b.org"


def test_line_ends_of_a_text_area_are_line_feeds() -> None:
    assert sent({"type": "string", "maxLength": 1000}, "a\r\nb\r\n") == "a\nb\n"


def test_a_choice_is_sent_by_its_index_and_nothing_else() -> None:
    schema = {"enum": ["1", "0", 1, ""]}
    assert sent(schema, "0") == "1"
    assert sent(schema, "2") == 1
    assert sent(schema, "3") == ""
    for text in ["4", "-1", "x", "0 ", "١", "99999999999999999999"]:
        assert "offered" in refusal(schema, text)


def test_several_choices_come_once_each_in_the_order_offered() -> None:
    schema = {"type": "array", "items": {"enum": ["a", "b", "b"]}}
    assert sent(schema, "2", "0", "2") == ["a", "b"]
    assert sent(schema, "1", "2") == ["b", "b"]
    assert sent(schema, required=True) == []


def test_a_boolean_is_what_was_chosen() -> None:
    assert sent({"type": "boolean"}, "false") is False
    assert sent({"type": "boolean"}, "true") is True
    assert "Yes or No" in refusal({"type": "boolean"}, "on")


MOMENT = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("local", "zone", "value"),
    [
        ("2026-07-01T12:00", "Europe/Berlin", "2026-07-01T12:00:00+02:00"),
        ("2026-12-01T12:00:05.25", "America/St_Johns", "2026-12-01T12:00:05.25-03:30"),
        ("2026-12-01 12:00", "utc", "2026-12-01T12:00:00Z"),
        ("2026-12-01T12:00", "+05:45", "2026-12-01T12:00:00+05:45"),
    ],
)
def test_a_local_time_becomes_a_time_with_its_offset(local: str, zone: str, value: str) -> None:
    assert sent(MOMENT, local, zone=zone) == value


@pytest.mark.parametrize(
    ("local", "zone", "words"),
    [
        ("2026-03-29T02:30", "Europe/Berlin", "does not exist"),
        (
            "2026-10-25T02:30",
            "Europe/Berlin",
            "twice in Europe/Berlin that day. Enter the offset you mean as the zone: +02:00 or +01:00",
        ),
        ("2026-02-30T12:00", "UTC", "that exist"),
        ("tomorrow", "UTC", "Enter a date and a time"),
        ("2026-02-03T12:00", "", "Enter a time zone"),
        ("2026-02-03T12:00", "Mars/Olympus", "Enter a time zone"),
        ("2026-02-03T12:00", "../../etc/passwd", "Enter a time zone"),
        ("2026-02-03T12:00", "+99:00", "Enter a date and time with its offset"),
        ("0001-01-01T00:00", "Asia/Tokyo", ""),
        ("9999-12-31T23:59", "America/New_York", ""),
    ],
)
def test_a_time_that_is_none_is_refused_with_help(local: str, zone: str, words: str) -> None:
    assert words in refusal(MOMENT, local, zone=zone)


def test_a_zone_alone_is_no_answer() -> None:
    assert answer(MOMENT, "", zone="Europe/Berlin").content == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n "a": 1,\n}', "Line 3, column 1"),
        ("{'a': 1}", "Line 1, column 2"),
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": 1e999}', "too large"),
        ('{"a": 0.1000000000000000000001}', "exactly"),
        ('{"a": "\\ud800"}', "half a character"),
        ("[" * 100_000, "nested"),
        ("[" * 150 + "]" * 150, "nested"),
        ("1" * 5_000, "digits"),
    ],
)
def test_a_slip_in_json_is_named(text: str, words: str) -> None:
    assert words in refusal({"type": "object"}, text)


def test_json_is_read_exactly() -> None:
    assert sent({"type": "object"}, '{"n": 9007199254740993, "t": "a\\u202eb"}') == {
        "n": 9007199254740993,
        "t": "a\u202eb",
    }


def test_an_error_inside_json_says_where() -> None:
    schema = {"type": "object", "properties": {"lines": {"type": "array", "items": {"type": "integer"}}}}
    assert refusal(schema, '{"lines": [1, "x"]}') == "At lines/1: Must be a whole number."


def test_a_field_that_cannot_be_read_keeps_the_others_errors_and_hides_what_may_only_follow() -> None:
    schema = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "string", "minLength": 5}},
        "required": ["a"],
        "minProperties": 2,
    }
    reading = read(schema, form_fields(schema), {"f0": ["x"], "f1": ["no"]})
    assert set(reading.errors) == {"f0", "f1"}
    assert len(reading.errors["f0"]) == 1
    assert reading.form_errors == ()


def test_an_error_about_the_whole_is_told_as_such() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "minProperties": 1}
    reading = read(schema, form_fields(schema), {})
    assert reading.content is None
    assert reading.form_errors == ("Must have at least 1 answer; it has 0.",)


def test_the_whole_answer_as_json_must_be_an_object() -> None:
    schema: dict[str, Any] = {"type": "object", "anyOf": [{}]}
    assert "JSON object" in read(schema, form_fields(schema), {"f0": ["[1]"]}).errors["f0"][0]
    assert read(schema, form_fields(schema), {"f0": [""]}).content == {}


def test_an_untouched_null_stays_null_and_a_touched_one_does_not() -> None:
    schema = {"properties": {"a": {"type": ["string", "null"]}}}
    fields, current = editing_fields(schema, {"a": None})
    assert read(schema, fields, {"f0": [""]}, current=current).content == {"a": None}
    assert read(schema, fields, {"f0": ["x"]}, current=current).content == {"a": "x"}


def test_null_that_is_offered_as_a_choice_can_be_the_default() -> None:
    schema = {"properties": {"a": {"enum": ["x", None], "default": None}}}
    fields = form_fields(schema)
    assert read(schema, fields, untouched(fields[0])).content == {"a": None}
