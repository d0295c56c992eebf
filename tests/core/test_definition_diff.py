"""What has changed in a tool or its server, in sentences that a person reads before they allow it (R28)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals.definition_diff import (
    MAX_DIFFERENCES,
    Definition,
    Part,
    added_tool,
    differences,
    moved_server,
)
from approvals.schema_diff import argument_changes
from approvals.text_diff import Mark, text_pieces
from runs.visible import visible

AMOUNT = {"type": "number", "maximum": 100}


def refund(arguments: dict[str, Any], *required: str, **fields: Any) -> Definition:
    schema = {"type": "object", "properties": arguments, "required": list(required)}
    return Definition(**{"description": "Refunds an order.", "input_schema": schema, **fields})


BEFORE = refund({"amount": AMOUNT}, "amount")


def said(before: Definition, after: Definition) -> list[str]:
    return [one.sentence for one in differences(before, after)]


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (refund({"amount": {**AMOUNT, "maximum": 10000}}, "amount"), "Argument amount: maximum 100 → 10000."),
        (refund({"amount": {"type": "number"}}, "amount"), "Argument amount: maximum 100 → not said."),
        (
            refund({"amount": {**AMOUNT, "type": "string"}}, "amount"),
            'Argument amount: type "number" → "string".',
        ),
        (refund({"amount": AMOUNT}), "Argument amount: required → optional."),
        (
            refund({"amount": AMOUNT, "iban": {"type": "string"}}, "amount", "iban"),
            'Argument iban: added, required, {"type":"string"}.',
        ),
        (refund({}), 'Argument amount: removed, required, {"maximum":100,"type":"number"}.'),
        (refund({"amount": AMOUNT}, "amount", title="Refund"), "Title: not said → “Refund”."),
        (
            refund({"amount": AMOUNT}, "amount", annotations={"destructiveHint": True}),
            "The server's own word “may destroy”: not said → true.",
        ),
        (
            refund({"amount": AMOUNT}, "amount", annotations={"mood": "good"}),
            'Annotation mood: not said → "good".',
        ),
        (
            refund({"amount": AMOUNT}, "amount", output_schema={"type": "object"}),
            'What it returns: not said → {"type":"object"}.',
        ),
    ],
)
def test_a_difference_is_one_sentence(after: Definition, sentence: str) -> None:
    assert said(BEFORE, after) == [sentence]


def test_nested_arguments_are_named_by_their_path() -> None:
    def lines(price: dict[str, Any]) -> Definition:
        item = {"type": "object", "properties": {"price": price}}
        return refund(
            {"order": {"type": "object", "properties": {"lines": {"type": "array", "items": item}}}}
        )

    assert said(lines({"minimum": 1}), lines({"minimum": 0})) == [
        "Argument order › lines[] › price: minimum 1 → 0."
    ]


def test_what_a_call_can_do_comes_before_what_is_said_about_it() -> None:
    after = refund(
        {"amount": {**AMOUNT, "description": "In cents."}, "iban": {}},
        "amount",
        title="Refund",
        description="Refunds any order.",
        annotations={"destructiveHint": True},
    )
    found = differences(BEFORE, after)
    assert [one.part for one in found] == [
        Part.HINT,
        Part.INPUT,
        Part.DESCRIPTION,
        Part.WORDS,
        Part.TITLE,
    ]
    assert [one.grave for one in found] == [True, True, False, False, False]


def test_a_description_is_shown_word_by_word() -> None:
    pieces = text_pieces("Never above 100 EUR.", "Up to 10000 EUR.")
    assert [(piece.mark.value, piece.text) for piece in pieces] == [
        ("gone", "Never above 100"),
        ("new", "Up to 10000"),
        ("same", " EUR."),
    ]


def test_a_value_too_long_for_a_sentence_is_shown_in_full_under_it() -> None:
    choices = [f"choice {number}" for number in range(40)]
    (found,) = differences(refund({"to": {"enum": choices}}), refund({"to": {"enum": choices[1:]}}))
    assert found.sentence == "Argument to: allowed values has changed."
    assert "choice 0" in (found.before or "")
    assert 'choice 0"' not in (found.after or "")
    assert "choice 39" in (found.after or "")


def test_hidden_characters_are_written_out_wherever_they_stand() -> None:
    after = refund(
        {"am\u202eount": {"description": "x\u200b"}},
        title="R\u2066",
        description="d\u200d",
        annotations={"\u2060": 1},
    )
    told = str([one.as_json() for one in differences(BEFORE, after)])
    assert not any(hidden in told for hidden in ("\u202e", "\u200b", "\u2066", "\u200d", "\u2060"))
    for code in ("202E", "200B", "2066", "200D", "2060"):
        assert f"⟨U+{code}⟩" in told


def test_an_added_tool_is_shown_with_all_that_it_says_of_itself() -> None:
    found = added_tool("fly", refund({"to": {"type": "string"}}, "to"))
    assert found[0].sentence == "The tool fly is new."
    assert 'Argument to: added, required, {"type":"string"}.' in [one.sentence for one in found]
    assert found[-1].pieces[-1].text == "Refunds an order."


def test_another_server_is_shown_by_both_addresses() -> None:
    (found,) = moved_server("https://a.example/mcp", "https://b.example/mcp")
    assert (found.grave, found.before, found.after) == (
        True,
        "https://a.example/mcp",
        "https://b.example/mcp",
    )
    (secret,) = moved_server("mcp --token [redacted]", "mcp --token [redacted]")
    assert "only in values that are not shown" in secret.sentence
    (unknown,) = moved_server("", "https://b.example/mcp")
    assert unknown.before == "The address is not known."


def test_more_differences_than_anybody_reads_are_counted() -> None:
    many = refund({f"a{number}": {} for number in range(350)})
    found = differences(refund({}), many)
    assert len(found) == MAX_DIFFERENCES + 1
    assert found[-1].sentence == "150 more differences are not listed. Look at the tool itself."


def test_a_long_value_says_how_much_of_it_is_missing() -> None:
    (found,) = differences(Definition(), Definition(output_schema={"const": "x" * 9_000}))
    assert found.after is not None
    assert found.after.endswith("more characters)")


leaves: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1, 1.0, "a", "\ud800", "string", ["a"], ["b", 1], [[]], {}]
)
words = st.sampled_from(
    ["type", "properties", "items", "required", "enum", "maximum", "$defs", "description", "a", "b"]
)
schemas = st.dictionaries(
    words,
    st.recursive(leaves, lambda inner: st.dictionaries(words, inner, max_size=4), max_leaves=6),
    max_size=4,
)
definitions = st.builds(
    Definition,
    title=st.sampled_from(["", "a", "b\u202e"]),
    description=st.text(max_size=20),
    input_schema=schemas,
    output_schema=st.none() | schemas,
    annotations=st.dictionaries(words, leaves, max_size=3),
)


@given(definitions)
def test_equal_definitions_differ_in_nothing(one: Definition) -> None:
    assert differences(one, one) == ()


@settings(max_examples=200)
@given(definitions, definitions)
def test_whatever_two_definitions_hold_their_difference_is_the_same_both_ways(
    one: Definition, other: Definition
) -> None:
    there, back = differences(one, other), differences(other, one)
    assert sorted(d.part for d in there) == sorted(d.part for d in back)
    assert {
        (c.argument, c.what, c.before, c.after)
        for c in argument_changes(one.input_schema, other.input_schema)
    } == {
        (c.argument, c.what, c.after, c.before)
        for c in argument_changes(other.input_schema, one.input_schema)
    }


texts = st.text(st.sampled_from("ab \n\u202e"), max_size=80) | st.text(max_size=80)


@given(texts, texts)
def test_the_pieces_of_a_text_put_together_are_the_old_and_the_new_one(before: str, after: str) -> None:
    pieces = text_pieces(before, after)
    assert "".join(p.text for p in pieces if p.mark is not Mark.NEW) == visible(before)
    assert "".join(p.text for p in pieces if p.mark is not Mark.GONE) == visible(after)


def test_a_text_made_to_be_slow_is_compared_in_time() -> None:
    before, after = "a b " * 5_000, "b a " * 5_000
    pieces = text_pieces(before, after)
    assert {piece.mark for piece in pieces} == {Mark.GONE, Mark.NEW}


def test_a_schema_nested_beyond_reason_is_compared_as_a_whole() -> None:
    def nested(inside: Any, levels: int) -> dict[str, Any]:
        return inside if not levels else {"properties": {"a": nested(inside, levels - 1)}}

    (found,) = argument_changes(nested({"type": "string"}, 90), nested({"type": "number"}, 90))
    assert "string" in (found.before or "")
    assert "number" in (found.after or "")
