"""Formats are checked by the grammar of their RFCs."""

from __future__ import annotations

import pytest

from runs.schema_check import validate

GOOD = {
    "email": ["a@b.org", '"a b"@x.org', "a.b+c@ex-ample.co", "a@[192.0.2.1]", "a@[IPv6:2001:db8::1]"],
    "uri": ["https://a", "mailto:a@b", "urn:isbn:1", "http://[::1]:80/p?q#f", "https://a/%C3%A9"],
    "date": ["2024-02-29", "2000-02-29", "0001-01-01"],
    "date-time": [
        "2024-01-01T00:00:00Z",
        "2024-01-01t00:00:00.123456789+02:00",
        "1990-12-31T23:59:60Z",
        "1990-12-31T15:59:60-08:00",
    ],
    "time": ["23:59:59Z", "00:00:00-11:30"],
    "hostname": ["localhost", "a-b.example.org"],
    "ipv4": ["192.0.2.1"],
    "ipv6": ["::1"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567-E89B-12D3-A456-426614174000"],
    "regex": ["^\\p{L}$"],
    "unheard-of": ["anything"],
}
BAD = {
    "email": [
        "a",
        "@b",
        "a@",
        "a@-b.org",
        "a..b@c.org",
        "a b@c.org",
        "a@é.fr",
        "a@b.org\n",
        "a" * 65 + "@b.org",
    ],
    "uri": [
        "//a",
        "a b:c",
        "http://a b",
        "http://a:x/",
        "http://[::1",
        "http://é",
        "http://a/%zz",
        "http://a/[x]",
        "x",
    ],
    "date": [
        "2023-02-29",
        "1900-02-29",
        "2024-2-1",
        "2024-13-01",
        "2024-04-31",
        "٢٠٢٤-01-01",
        "2024-01-01\n",
    ],
    "date-time": [
        "2024-01-01T00:00:00",
        "2024-01-01 00:00:00Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00Z",
        "2024-01-01T00:00:00+24:00",
        "1990-12-31T23:58:60Z",
        "2024-01-01T00:00:00Z\n",
    ],
    "time": ["24:00:00Z", "12:00:00", "12:60:00Z"],
    "hostname": ["-a", "a..b", "a_b", "a" * 64],
    "ipv4": ["1.2.3", "01.2.3.4"],
    "ipv6": ["::1%eth0", "::g"],
    "uuid": ["123e4567e89b12d3a456426614174000", "x"],
    "regex": ["["],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in GOOD for text in GOOD[name]])
def test_a_text_in_its_format_is_accepted(name: str, text: str) -> None:
    assert validate({"format": name}, text) == []


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in BAD for text in BAD[name]])
def test_a_text_off_its_format_is_refused_with_an_example_of_a_right_one(name: str, text: str) -> None:
    [error] = validate({"format": name}, text)
    assert error.validator == "format"
    assert error.message.startswith("Enter ")


@pytest.mark.parametrize("name", BAD)
def test_a_format_says_nothing_about_values_that_are_no_text(name: str) -> None:
    assert validate({"format": name}, 5) == []
