"""Answers by question text, as clients send them, made into the content that a pause wants (m8tes-http 4.1).

Plain values in and out. Every answer is read by what its question asks for: options by label or value, typed fields by
their type. Whether the whole fits its schema is judged where every answer is, by `runs.round_checks`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from approvals.asked_questions import APPROVE, REVISE, AskedQuestion, Choice
from approvals.form_values.json_text import value_of
from approvals.form_values.numbers import integer_of, number_of
from approvals.form_values.refusals import Refused
from approvals.schema_form import FieldKind, FormField
from runs import recommended
from runs.canonical import canonical_json
from runs.round_states import RoundKind

Answers = Mapping[str, Any]

_NUMBERS: Final = {FieldKind.INTEGER: integer_of, FieldKind.NUMBER: number_of}
_NOT_A_CHOICE: Final = "Choose one of the options by its label."


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Why answers cannot be used: `unknown` keys that no question has, and what is wrong by question text."""

    unknown: tuple[str, ...] = ()
    wrong: Mapping[str, str]


def content_of(
    kind: RoundKind, questions: Sequence[AskedQuestion], answers: Answers
) -> list[dict[str, Any]] | Unread:
    """The contents that accept the requests of one ask: one per question for an agent's questions, else one in all."""
    placed, unknown = _placed(questions, answers)
    contents: list[dict[str, Any]] = []
    wrong: dict[str, str] = {}
    for question in questions:
        try:
            contents.append(_content(kind, question, placed.get(question.text)))
        except Refused as refused:
            wrong[question.text] = refused.message
    if unknown or wrong:
        return Unread(unknown=tuple(unknown), wrong=wrong)
    if kind is RoundKind.QUESTION:
        return contents
    return [{name: value for content in contents for name, value in content.items()}]


def knows(questions: Sequence[AskedQuestion], answers: Answers) -> bool:
    """Whether every key is that of a question."""
    return not _placed(questions, answers)[1]


def _placed(questions: Sequence[AskedQuestion], answers: Answers) -> tuple[dict[str, Any], list[str]]:
    """Each answer at the text of its question. A text that is shown counts before any other name of a question."""
    texts = {question.text for question in questions}
    names = {name: question.text for question in reversed(questions) for name in question.names}
    placed: dict[str, Any] = {}
    unknown = []
    for key, value in answers.items():
        text = key if key in texts else names.get(key)
        if text is None or text in placed:
            unknown.append(key)
        else:
            placed[text] = value
    return placed, unknown


def _content(kind: RoundKind, question: AskedQuestion, value: Any) -> dict[str, Any]:
    if kind is RoundKind.QUESTION:
        return _choice_or_text(question, value)
    if kind is RoundKind.PLAN:
        return _plan(_text(value))
    if kind is RoundKind.OUTCOME:
        return {"decision": _chosen(question, _text(value)).value}
    field = question.field
    if field is None:
        raise TypeError(f"{question.text!r} asks for no field of a form")
    return _of_field(question, field, value)


def _choice_or_text(question: AskedQuestion, value: Any) -> dict[str, Any]:
    """Options that are named become their indexes; what is left is the person's own words (R22)."""
    given = _labels(question, value) if question.multiple else [_text(value)]
    chosen = [(text, _find(question, text)) for text in given]
    selected = [choice.value for _, choice in chosen if choice is not None]
    others = [text for text, choice in chosen if choice is None]
    if not chosen:
        raise Refused("Answer this question.")
    content: dict[str, Any] = {"selected": sorted(set(selected))}
    return {**content, "other": ", ".join(others)} if others else content


def _plan(text: str) -> dict[str, Any]:
    """`Approve`, spelled so, goes on; anything else asks for another plan, with or without `Revise:` before it."""
    if text == APPROVE:
        return {"decision": "approve"}
    words = text
    if text.casefold() == REVISE.casefold() or text.casefold().startswith(f"{REVISE.casefold()}:"):
        words = text[len(REVISE) :].removeprefix(":").strip()
    return {"decision": "revise", "text": words} if words else {"decision": "revise"}


def _of_field(question: AskedQuestion, field: FormField, value: Any) -> dict[str, Any]:
    """The field's part of the content: nothing for one that was left open."""
    if value is None or value == "":
        return {field.name: None} if field.name and field.required and field.nullable else {}
    read = _value(question, field, value)
    if field.name is not None:
        return {field.name: read}
    if not isinstance(read, dict):
        raise Refused('Answer with a JSON object, such as {"name": "value"}.')
    return read


def _value(question: AskedQuestion, field: FormField, value: Any) -> Any:
    if field.kind is FieldKind.MULTICHOICE:
        texts = value if isinstance(value, list) else _labels(question, value)
        wanted = [_chosen(question, text) for text in texts]
        return [choice.value for choice in question.choices if choice in wanted]
    if field.kind in (FieldKind.CHOICE, FieldKind.BOOLEAN):
        return _chosen(question, value).value
    if field.kind in _NUMBERS:
        return _number(field.kind, value)
    if field.kind is FieldKind.JSON:
        return _json(value)
    if not isinstance(value, str):
        raise Refused("Answer with text.")
    return value


def _number(kind: FieldKind, value: Any) -> int | float:
    if isinstance(value, str):
        return _NUMBERS[kind](value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused("Answer with a number.")
    return value


def _json(value: Any) -> Any:
    """JSON by its text or as it is; text that is no JSON stands for itself."""
    if not isinstance(value, str):
        return value
    try:
        return value_of(value)
    except Refused:
        return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Refused("Answer with text.")
    return value.strip()


def _labels(question: AskedQuestion, value: Any) -> list[str]:
    """Several answers: a list, a JSON list as text, or labels with commas between; labels may have commas inside."""
    if isinstance(value, list):
        return [_text(one) for one in value]
    rest = _text(value)
    if rest.startswith("[") and isinstance(listed := _json(rest), list):
        return [_text(one) for one in listed]
    spellings = {spelling for choice in question.choices for spelling in _spellings(choice)}
    longest_first = sorted(spellings, key=len, reverse=True)
    found = []
    while rest:
        here = next((text for text in longest_first if _begins(rest, text)), rest.partition(",")[0])
        found.append(here.strip())
        rest = rest[len(here) :].lstrip().removeprefix(",").strip()
    return [text for text in found if text]


def _begins(rest: str, label: str) -> bool:
    after = rest[len(label) :].lstrip()
    return bool(label) and rest.startswith(label) and (not after or after.startswith(","))


def _chosen(question: AskedQuestion, value: Any) -> Choice:
    """The option that is named by its label or is the value itself. Raises Refused."""
    found = _find(question, value)
    if found is None:
        raise Refused(_NOT_A_CHOICE)
    return found


def _find(question: AskedQuestion, value: Any) -> Choice | None:
    """A shown label counts before any other spelling, and a spelling before a value."""
    if isinstance(value, str):
        text = value.strip()
        by_label = next((choice for choice in question.choices if choice.label == text), None)
        spelled = next((choice for choice in question.choices if text in _spellings(choice)), None)
        return by_label or spelled or _by_value(question, text)
    return _by_value(question, canonical_json(value))


def _by_value(question: AskedQuestion, wanted: str) -> Choice | None:
    """The option of a form that is the value itself; what an agent's options stand for is ours."""
    if question.field is None:
        return None
    return next((choice for choice in question.choices if canonical_json(choice.value) == wanted), None)


def _spellings(choice: Choice) -> set[str]:
    """Every text that stands for an option: label, name, and its value; without the mark of a recommendation too."""
    texts = {choice.label, choice.name, choice.label.removesuffix(recommended.MARK).strip()}
    if isinstance(choice.value, str):
        texts.add(choice.value)
    elif isinstance(choice.value, bool):
        texts |= {choice.name.capitalize(), choice.label.lower()}
    return texts
