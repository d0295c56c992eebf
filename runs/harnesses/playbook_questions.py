"""The questions of an `ask` step: their shape at save time, and the questions to ask once filled in.

Plain module. The shape is that of m8tes-http 2: `{question, header, multiSelect, options: [{label,
description?}]}`. No options (or an empty list) means that the answer is free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from runs.harnesses.playbook_expressions import (
    TemplateError,
    is_only_expression,
    is_template,
    render,
    render_text,
)
from runs.harnesses.playbook_mistakes import quoted, unknown_keys
from runs.steps import Json

MAX_QUESTIONS: Final = 4
MAX_OPTIONS: Final = 50
_LENGTHS: Final = {"question": 4_000, "header": 60, "label": 200, "description": 1_000}
_PLAN_HEADER: Final = "Plan Approval"
"""m8tes clients know a plan by this header, so no question may carry it."""


def question_mistakes(questions: Json, where: str, *, templates: bool) -> Iterator[str]:
    """Mistakes in a list of questions as "path: what is wrong".

    `templates` is true for a definition, where `{{ }}` may stand for a text, for all options and for all
    questions, and false for what they were filled in with.
    """
    if templates and _is_placeholder(questions):
        return
    if not isinstance(questions, list) or not 1 <= len(questions) <= MAX_QUESTIONS:
        yield f"{where}: must be a list of 1 to {MAX_QUESTIONS} questions"
        return
    for index, question in enumerate(questions):
        yield from _one_question(question, f"{where}[{index}]", templates=templates)
    texts = [question.get("question") for question in questions if isinstance(question, Mapping)]
    for text in _repeated(texts, templates=templates):
        yield f"{where}: the question {quoted(text)} stands there twice; answers are told apart by its text"


def filled_in(questions: Json, env: Mapping[str, Json], where: str) -> Sequence[Mapping[str, Json]]:
    """The questions with every template filled in and every key of the shape present.

    Raises TemplateError when an expression fails, ValueError (its text lists the mistakes) when what comes
    out is not a list of proper questions.
    """
    rendered = (
        [_render_question(question, env, f"{where}[{index}]") for index, question in enumerate(questions)]
        if isinstance(questions, list)
        else render(questions, env, where)
    )
    mistakes = list(question_mistakes(rendered, where, templates=False))
    if mistakes:
        raise ValueError("; ".join(mistakes[:3]))
    return [
        {
            "question": question["question"],
            "header": question["header"],
            "multiSelect": question.get("multiSelect", False),
            "options": question.get("options", []),
        }
        for question in rendered
    ]


def _render_question(question: Mapping[str, Json], env: Mapping[str, Json], where: str) -> Mapping[str, Json]:
    rendered: dict[str, Json] = {}
    for key, value in question.items():
        place = f"{where}.{key}"
        if key == "options" and isinstance(value, list):
            rendered[key] = [
                {name: render_text(text, env, f"{place}[{index}].{name}") for name, text in option.items()}
                for index, option in enumerate(value)
            ]
        elif key in _LENGTHS:
            rendered[key] = render_text(value, env, place)
        else:
            rendered[key] = render(value, env, place)
    return rendered


def _one_question(question: Json, where: str, *, templates: bool) -> Iterator[str]:
    if not isinstance(question, Mapping):
        yield f"{where}: must be an object with question, header, multiSelect and options"
        return
    yield from unknown_keys(question, {"question", "header", "multiSelect", "options"}, where)
    yield from _text(question, "question", where, templates=templates)
    yield from _text(question, "header", where, templates=templates)
    if question.get("header") == _PLAN_HEADER:
        yield f'{where}.header: "{_PLAN_HEADER}" is kept for plans; use a plan step'
    options, multiple = question.get("options", []), question.get("multiSelect", False)
    if not isinstance(multiple, bool) and not (templates and _is_placeholder(multiple)):
        yield f"{where}.multiSelect: must be true or false"
    if templates and _is_placeholder(options):
        return
    yield from _options(options, f"{where}.options", templates=templates)
    if multiple is True and options == []:
        yield f"{where}.multiSelect: needs options to choose from"


def _options(options: Json, where: str, *, templates: bool) -> Iterator[str]:
    if not isinstance(options, list) or len(options) == 1 or len(options) > MAX_OPTIONS:
        yield f"{where}: must be a list of 2 to {MAX_OPTIONS} options, or empty for a free answer"
        return
    for index, option in enumerate(options):
        place = f"{where}[{index}]"
        if not isinstance(option, Mapping):
            yield f"{place}: must be an object with a label"
            continue
        yield from unknown_keys(option, {"label", "description"}, place)
        yield from _text(option, "label", place, templates=templates)
        if "description" in option:
            yield from _text(option, "description", place, templates=templates, may_be_empty=True)
    labels = [option.get("label") for option in options if isinstance(option, Mapping)]
    for label in _repeated(labels, templates=templates):
        yield f"{where}: the label {quoted(label)} stands there twice; answers are told apart by label"


def _text(
    value: Mapping[str, Json], key: str, where: str, *, templates: bool, may_be_empty: bool = False
) -> Iterator[str]:
    text = value.get(key)
    if not isinstance(text, str):
        yield f"{where}.{key}: must be text"
    elif not text.strip() and not may_be_empty:
        yield f"{where}.{key}: must not be empty"
    elif len(text) > _LENGTHS[key] and not (templates and is_template(text)):
        yield f"{where}.{key}: has at most {_LENGTHS[key]} characters"


def _repeated(texts: Sequence[Json], *, templates: bool) -> Iterator[str]:
    seen: set[str] = set()
    for text in texts:
        if not isinstance(text, str) or (templates and is_template(text)):
            continue
        if text in seen:
            yield text
        seen.add(text)


def _is_placeholder(value: Json) -> bool:
    """Whether an expression stands for the whole value; a broken one is reported elsewhere."""
    try:
        return isinstance(value, str) and is_only_expression(value)
    except TemplateError:
        return True
