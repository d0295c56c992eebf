"""Answers as text, by the text of their questions: what clients find in `tool_input.answers`.

Values nobody chose end in a mark that says so (m8tes-http 4.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from approvals.asked_questions import APPROVE, AskedQuestion
from approvals.cards.arguments import shown
from runs import recommended
from runs.models import Round
from runs.round_states import RoundKind
from runs.visible import visible

NOT_ANSWERED: Final = "[auto-selected: nobody answered in time]"
NOT_ASKED: Final = "[auto-selected: the agent did not wait for an answer]"


def answers_at_once(
    questions: Sequence[AskedQuestion], asked: Sequence[Mapping[str, Any]], given: Mapping[str, Any]
) -> dict[str, str]:
    """What was taken for questions that did not wait. `asked` and `given` are as the agent spelled them."""
    return {
        question.text: f"{text} {NOT_ASKED}"
        for question, raw in zip(questions, asked, strict=True)
        if (text := _joined(given.get(raw["question"])))
    }


def answers_of(round_: Round, key: str, questions: Sequence[AskedQuestion]) -> dict[str, str]:
    """What was answered, by the text of the question; what nobody answered is marked so (m8tes-http 4.5)."""
    given: Mapping[str, Any] = round_.responses or round_.drafts
    mark = f" {NOT_ANSWERED}" if round_.decided_via == recommended.VIA else ""
    answers = {}
    for number, question in enumerate(questions):
        response = given.get(f"q{number}" if round_.kind == RoundKind.QUESTION else key) or {}
        content = response.get("content")
        if response.get("action") == "accept" and content is not None:
            text = _answer(RoundKind(round_.kind), question, content)
            if text is not None:
                answers[question.text] = f"{text}{mark}"
    return answers


def _answer(kind: RoundKind, question: AskedQuestion, content: Mapping[str, Any]) -> str | None:
    """One answer as text; None if the question was left open."""
    if kind is RoundKind.QUESTION:
        labels = [choice.label for choice in question.choices if choice.value in content.get("selected", ())]
        return ", ".join([*labels, *([visible(content["other"])] if content.get("other") else [])])
    if kind in (RoundKind.PLAN, RoundKind.OUTCOME):
        word, text = content.get("decision"), visible(str(content.get("text") or ""))
        label = next((choice.label for choice in question.choices if choice.value == word), APPROVE)
        return f"{label}: {text}" if text and label != APPROVE else label
    field = question.field
    if field is None or field.name is None:
        return shown(dict(content))
    if field.name not in content:
        return None
    return _field_text(question, content[field.name])


def _field_text(question: AskedQuestion, value: Any) -> str:
    values = value if question.multiple and isinstance(value, list) else [value]
    texts = []
    for one in values:
        choice = next((c for c in question.choices if c.value == one and type(c.value) is type(one)), None)
        texts.append(choice.label if choice else visible(one) if isinstance(one, str) else shown(one))
    return ", ".join(texts)


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(visible(str(one)) for one in value)
    return visible(str(value)) if value is not None else ""
