"""Answers by question text become the content that a pause wants, or a refusal that names the question."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.asked_questions import AskedQuestion, of_agent, of_form, of_outcome, of_plan
from approvals.question_answers import Unread, content_of
from runs.round_states import RoundKind
from tests.api.requests import PARCEL

COLOURS = {
    "question": "Colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "blue (Recommended)"}, {"label": "red\u200b"}],
}
DAYS = {
    "question": "Days?",
    "header": "Days",
    "multiSelect": True,
    "options": [{"label": "Mon"}, {"label": "Mon, early"}, {"label": "Tue"}],
}
FREE = {"question": "Why?", "header": "Why", "multiSelect": False, "options": []}


def read(questions: Any, answers: dict[str, Any], kind: RoundKind = RoundKind.QUESTION) -> Any:
    return content_of(kind, questions, answers)


def typed(answers: dict[str, Any]) -> Any:
    """The content of the parcel form, without its required fields, or what is wrong by question."""
    found = read(
        of_form(PARCEL), {"Street": "High St", "How many parcels?": 1, **answers}, RoundKind.ELICITATION
    )
    if isinstance(found, Unread):
        return dict(found.wrong)
    [content] = found
    return {name: value for name, value in content.items() if name not in ("street", "parcels")}


@pytest.mark.parametrize(
    ("question", "value", "content"),
    [
        (COLOURS, "blue (Recommended)", {"selected": [0]}),
        (COLOURS, " blue ", {"selected": [0]}),
        (COLOURS, "red⟨U+200B⟩", {"selected": [1]}),
        (COLOURS, "red\u200b", {"selected": [1]}),
        (COLOURS, "0", {"selected": [], "other": "0"}),
        (COLOURS, "green", {"selected": [], "other": "green"}),
        (DAYS, ["Tue", "Mon"], {"selected": [0, 2]}),
        (DAYS, "Tue, Mon", {"selected": [0, 2]}),
        (DAYS, "Mon, early, Tue", {"selected": [1, 2]}),
        (DAYS, "Mon,Mon, early", {"selected": [0, 1]}),
        (DAYS, '["Tue"]', {"selected": [2]}),
        (DAYS, "Tue, Sunday", {"selected": [2], "other": "Sunday"}),
        (DAYS, "Monday", {"selected": [], "other": "Monday"}),
        (FREE, "Because, well", {"selected": [], "other": "Because, well"}),
    ],
    ids=str,
)
def test_labels_become_indexes_and_the_rest_is_the_persons_own_text(
    question: dict[str, Any], value: Any, content: dict[str, Any]
) -> None:
    assert read(of_agent([question]), {question["question"]: value}) == [content]


@pytest.mark.parametrize("value", ["", "  ", 5, True, None, {}, [], ["Mon", 1], [""], "[]", ","], ids=repr)
def test_what_is_no_answer_is_refused(value: Any) -> None:
    found = read(of_agent([DAYS]), {"Days?": value})

    assert isinstance(found, Unread)
    assert list(found.wrong) == ["Days?"]


def test_every_question_needs_its_answer_and_every_answer_its_question() -> None:
    found = read(of_agent([COLOURS, DAYS]), {"Colour?": "blue", "Size?": "L"})

    assert isinstance(found, Unread)
    assert (found.unknown, list(found.wrong)) == (("Size?",), ["Days?"])


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("Approve", {"decision": "approve"}),
        (" Approve ", {"decision": "approve"}),
        ("Revise", {"decision": "revise"}),
        ("Revise: shorter", {"decision": "revise", "text": "shorter"}),
        ("Shorter, please", {"decision": "revise", "text": "Shorter, please"}),
        ("Approve it later", {"decision": "revise", "text": "Approve it later"}),
        ("approve", {"decision": "revise", "text": "approve"}),
        ("APPROVE", {"decision": "revise", "text": "APPROVE"}),
        ("Revised plan, please", {"decision": "revise", "text": "Revised plan, please"}),
    ],
)
@pytest.mark.parametrize("key", ["Plan Approval", "1. Draft"])
def test_approve_goes_on_and_anything_else_asks_for_another_plan(
    key: str, value: str, content: dict[str, str]
) -> None:
    assert read(of_plan("1. Draft"), {key: value}, RoundKind.PLAN) == [content]


@pytest.mark.parametrize(("value", "word"), [("It happened", "happened"), ("run_again", "run_again")])
def test_what_became_of_a_call_is_one_of_three(value: str, word: str) -> None:
    assert read(of_outcome("What?"), {"What?": value}, RoundKind.OUTCOME) == [{"decision": word}]
    assert isinstance(read(of_outcome("What?"), {"What?": "perhaps"}, RoundKind.OUTCOME), Unread)


@pytest.mark.parametrize(
    ("answers", "content"),
    [
        ({"Weight in kg": "1.5"}, {"weight": 1.5}),
        ({"Weight in kg": 1.5}, {"weight": 1.5}),
        ({"weight": "2"}, {"weight": 2}),
        ({"Insure it?": "Yes"}, {"insured": True}),
        ({"Insure it?": "no"}, {"insured": False}),
        ({"Insure it?": "false"}, {"insured": False}),
        ({"Insure it?": True}, {"insured": True}),
        ({"Speed": "Express"}, {"speed": "xp"}),
        ({"Speed": "xp"}, {"speed": "xp"}),
        ({"Extras": "signature, by hand, SMS"}, {"extras": ["signature, by hand", "SMS"]}),
        ({"Extras": ["SMS", "gift wrap"]}, {"extras": ["gift wrap", "SMS"]}),
        ({"note": "  as typed "}, {"note": "  as typed "}),
        ({"note": "", "Weight in kg": "", "Speed": None}, {}),
    ],
    ids=str,
)
def test_answers_to_a_form_have_the_types_of_its_fields(
    answers: dict[str, Any], content: dict[str, Any]
) -> None:
    assert typed(answers) == content


@pytest.mark.parametrize(
    "answers",
    [
        {"Weight in kg": "heavy"},
        {"Weight in kg": "1,5"},
        {"Weight in kg": True},
        {"Insure it?": "perhaps"},
        {"Insure it?": 1},
        {"Speed": "Fast"},
        {"Speed": ["Express"]},
        {"Extras": "balloons"},
        {"Extras": [5]},
        {"note": 5},
        {"note": ["a"]},
    ],
    ids=str,
)
def test_an_answer_of_another_type_names_its_question(answers: dict[str, Any]) -> None:
    assert list(typed(answers)) == list(answers)


def test_options_with_numbers_are_found_by_label_text_and_value() -> None:
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2], "enumNames": ["One", "Two"]}}}

    for value in ("Two", "2", 2):
        assert read(of_form(schema), {"n": value}, RoundKind.ELICITATION) == [{"n": 2}]
    assert isinstance(read(of_form(schema), {"n": "3"}, RoundKind.ELICITATION), Unread)


@pytest.mark.parametrize(("value", "content"), [('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1})])
def test_a_form_that_is_one_question_takes_an_object(value: Any, content: dict[str, Any]) -> None:
    assert read(of_form(True), {"Answer": value}, RoundKind.ELICITATION) == [content]
    assert isinstance(read(of_form(True), {"Answer": "text"}, RoundKind.ELICITATION), Unread)


def test_a_shown_text_counts_before_the_name_of_another_field() -> None:
    schema = {
        "type": "object",
        "properties": {"to": {"type": "string", "title": "from"}, "from": {"type": "string", "title": "to"}},
    }

    found = read(of_form(schema), {"from": "A", "to": "B"}, RoundKind.ELICITATION)

    assert found == [{"to": "A", "from": "B"}]


def test_one_question_is_not_answered_twice() -> None:
    found = read(of_plan("text"), {"Plan Approval": "Approve", "text": "Revise"}, RoundKind.PLAN)

    assert isinstance(found, Unread)
    assert found.unknown == ("text",)


def test_questions_are_told_apart_when_they_look_the_same() -> None:
    twins: tuple[AskedQuestion, ...] = of_agent([FREE, {**FREE, "header": "Again"}])

    assert [question.text for question in twins] == ["Why?", "Why? (2)"]
