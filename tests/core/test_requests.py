"""Our own pauses ask by forms like any other, and one validator judges their answers (design section 1)."""

from __future__ import annotations

from typing import Any

import pytest

from runs import requests
from runs.requests import MAX_WORDS
from runs.schema_check import check_schema, validate

SEGMENTS = {
    "question": "Which segment?",
    "header": "Segment",
    "multiSelect": False,
    "options": [{"label": "enterprise", "description": "Large"}, {"label": "mid-market"}],
}
CHANNELS = {
    "question": "Which channels?",
    "multiSelect": True,
    "options": [{"label": "mail"}, {"label": "phone"}, {"label": "post"}],
}
OPEN = {"question": "Anything else?", "multiSelect": False}


def accepts(request: dict[str, Any], content: Any) -> bool:
    check_schema(request["requested_schema"])
    return not validate(request["requested_schema"], content)


FIXED = {
    "approval": requests.approval("Allow desk:refund?")["approval"],
    "plan": requests.plan("1. Draft")["plan"],
    "outcome": requests.outcome("What became of it?")["outcome"],
}


@pytest.mark.parametrize(
    ("kind", "words", "text"),
    [
        ("approval", ["allow", "deny"], "feedback"),
        ("plan", ["approve", "revise"], "text"),
        ("outcome", ["happened", "run_again", "stop"], "text"),
    ],
)
def test_a_decision_is_one_word_of_its_kind_with_bounded_text(kind: str, words: list[str], text: str) -> None:
    request = FIXED[kind]

    for word in words:
        assert accepts(request, {"decision": word})
        assert accepts(request, {"decision": word, text: "x" * MAX_WORDS})
    for content in (
        {},
        {"decision": "perhaps"},
        {"decision": words[0].upper()},
        {"decision": None},
        {"decision": words[0], text: "x" * (MAX_WORDS + 1)},
        {"decision": words[0], text: 1},
        {"decision": words[0], "extra": 1},
        [],
    ):
        assert not accepts(request, content), content


def test_only_an_approval_takes_edited_arguments_and_only_an_object() -> None:
    assert accepts(FIXED["approval"], {"decision": "allow", "arguments": {"to": "a"}})
    assert not accepts(FIXED["approval"], {"decision": "allow", "arguments": ["a"]})
    assert not accepts(FIXED["plan"], {"decision": "approve", "arguments": {}})


def test_only_the_approval_of_a_plan_names_a_mode_and_only_one_that_is_offered() -> None:
    request = requests.plan("1. Draft", ["approval", "autonomous"])["plan"]
    for mode in ("approval", "autonomous"):
        assert accepts(request, {"decision": "approve", "then": mode})
        assert not accepts(request, {"decision": "revise", "then": mode})
    assert accepts(request, {"decision": "approve"})
    assert accepts(request, {"decision": "revise", "text": "Shorter"})
    for mode in ("plan", "", None, 1):
        assert not accepts(request, {"decision": "approve", "then": mode})
    assert not accepts(FIXED["plan"], {"decision": "approve", "then": "approval"}), "it offers none"


@pytest.mark.parametrize("key", FIXED)
def test_a_request_says_its_key_its_mode_and_its_message(key: str) -> None:
    request = FIXED[key]

    assert (request["request_key"], request["mode"]) == (key, "form")
    assert request["message"] in {"Allow desk:refund?", "1. Draft", "What became of it?"}


def test_questions_are_numbered_keys_with_their_texts() -> None:
    asked = requests.questions([SEGMENTS, CHANNELS, OPEN, SEGMENTS])

    assert list(asked) == ["q0", "q1", "q2", "q3"]
    assert [request["request_key"] for request in asked.values()] == ["q0", "q1", "q2", "q3"]
    assert asked["q1"]["message"] == "Which channels?"


@pytest.mark.parametrize(
    ("question", "content", "good"),
    [
        (SEGMENTS, {"selected": [0]}, True),
        (SEGMENTS, {"selected": [1]}, True),
        (SEGMENTS, {"selected": [2]}, False),
        (SEGMENTS, {"selected": [-1]}, False),
        (SEGMENTS, {"selected": [0, 1]}, False),
        (SEGMENTS, {"selected": ["enterprise"]}, False),
        (SEGMENTS, {"selected": []}, False),
        (SEGMENTS, {"selected": [], "other": "none of them"}, True),
        (SEGMENTS, {"selected": [], "other": ""}, False),
        (SEGMENTS, {"other": "none of them"}, False),
        (SEGMENTS, {"selected": [0], "other": "x" * (MAX_WORDS + 1)}, False),
        (CHANNELS, {"selected": [0, 2]}, True),
        (CHANNELS, {"selected": [0, 0]}, False),
        (CHANNELS, {"selected": [], "other": "carrier pigeon"}, True),
        (OPEN, {"selected": [], "other": "no"}, True),
        (OPEN, {"selected": [0], "other": "no"}, False),
        (OPEN, {"selected": []}, False),
    ],
)
def test_an_answer_chooses_what_was_offered_or_says_something_else(
    question: dict[str, Any], content: dict[str, Any], good: bool
) -> None:
    assert accepts(requests.questions([question])["q0"], content) is good


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.mark.parametrize(
    ("question", "response", "given"),
    [
        (SEGMENTS, accept(selected=[1]), "mid-market"),
        (SEGMENTS, accept(selected=[1], other="both"), "both"),
        (SEGMENTS, accept(selected=[], other="neither"), "neither"),
        (CHANNELS, accept(selected=[2, 0]), ["post", "mail"]),
        (CHANNELS, accept(selected=[0], other="pigeon"), ["mail", "pigeon"]),
        (CHANNELS, accept(selected=[], other="pigeon"), ["pigeon"]),
        (OPEN, accept(selected=[], other="no"), "no"),
    ],
)
def test_the_agent_gets_labels_or_the_other_text(
    question: dict[str, Any], response: dict[str, Any], given: Any
) -> None:
    assert requests.answers([question], {"q0": response}) == {question["question"]: given}


def test_a_question_that_was_not_answered_is_absent() -> None:
    responses = {
        "q0": {"action": "decline"},
        "q1": {"action": "cancel"},
        "q2": accept(selected=[], other="yes"),
    }

    assert requests.answers([SEGMENTS, CHANNELS, OPEN], responses) == {"Anything else?": "yes"}
    assert requests.answers([SEGMENTS], {}) == {}
