"""Headlines and lengths of time: what a person reads first."""

from __future__ import annotations

import pytest

from approvals.cards.wording import (
    call_headline,
    humanise,
    length_words,
    plan_headline,
    questions_headline,
    requests_headline,
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("send_email", "Send email"),
        ("sendEmail", "Send email"),
        ("refund", "Refund"),
        ("a.b-c", "A b c"),
        ("_", "_"),
    ],
)
def test_a_tool_name_becomes_words(name: str, words: str) -> None:
    assert humanise(name) == words


@pytest.mark.parametrize(
    ("title", "name", "arguments", "headline"),
    [
        (
            "",
            "refund",
            {"order_id": 1042, "amount": 2000.0, "currency": "EUR"},
            "Refund 2,000.00 EUR for order 1042",
        ),
        ("Refund an order", "refund", {"amount": 5, "currency": "EUR"}, "Refund an order: 5.00 EUR"),
        (
            "Send an e-mail",
            "send",
            {"to": "ann@example.com", "subject": "Hi"},
            "Send an e-mail to ann@example.com",
        ),
        ("", "send", {"to": ["a@x.org", "b@x.org"]}, "Send to 2 recipients"),
        ("", "write_file", {"path": "/exports/a.csv"}, "Write file: /exports/a.csv"),
        ("", "delete_files", {"paths": ["a", "b", "c"]}, "Delete files: 3 paths"),
        ("", "ping", {}, "Ping"),
    ],
)
def test_a_call_is_named_with_what_matters_in_it(
    title: str, name: str, arguments: dict, headline: str
) -> None:
    assert call_headline(title, name, arguments) == headline


@pytest.mark.parametrize("amount", [19.999, 1234567.125, 0.001])
def test_an_amount_in_a_headline_is_never_rounded(amount: float) -> None:
    headline = call_headline("", "pay", {"amount": amount, "currency": "EUR"})
    assert f"{amount:,}" in headline


@pytest.mark.parametrize("amount", [True, "20", None, float("inf"), 1e300, {"value": 1}])
def test_what_is_no_amount_is_not_shown_as_one(amount: object) -> None:
    assert call_headline("", "pay", {"amount": amount}) == "Pay"


def test_a_headline_shows_hidden_characters_and_stays_short() -> None:
    headline = call_headline("Send\u202e", "send", {"to": "x" * 500})
    assert "⟨U+202E⟩" in headline
    assert len(headline) <= 140
    assert headline.endswith("…")


def test_a_server_is_quoted_for_one_request_and_counted_for_several() -> None:
    form = {"mode": "form", "message": "Where to?"}
    assert requests_headline("shipping", [form]) == "Where to?"
    assert requests_headline("shipping", [form, form]) == "shipping asks for 2 things: Where to?"
    assert requests_headline("shipping", [{"mode": "form", "message": ""}]) == "shipping asks for input"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://bank.example/pay", "bank.example"),
        ("javascript:alert(1)", "not valid"),
        ("http://[", "not valid"),
    ],
)
def test_a_link_request_is_named_by_its_host(url: str, host: str) -> None:
    assert host in requests_headline("desk", [{"mode": "url", "message": "Pay", "url": url}])


def test_a_plan_is_named_by_its_first_words() -> None:
    assert plan_headline("# Migrate\n\n1. Export\n2. Import") == "Plan: Migrate"
    assert plan_headline("1. Export\n2. Import") == "Plan in 2 steps: Export"
    assert plan_headline("") == "Plan: empty"


def test_several_questions_are_counted() -> None:
    assert questions_headline(["Which?"]) == "Which?"
    assert questions_headline(["Which?", "When?"]) == "Which? (and 1 more)"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "under 1 min"),
        (59, "under 1 min"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (86_400, "1 d"),
    ],
)
def test_a_length_of_time_is_told_in_its_largest_unit(seconds: float, words: str) -> None:
    assert length_words(seconds) == words
