"""What m8tes clients see of a pause that is answered with more than allow or deny: questions in their shape.

Every kind is turned into the same questions, so that one module words them, one reads the answers
(`approvals.question_answers`), and both agree on what each text stands for. Texts from outside come with every hidden
character written out (R13) and bounded in length; what was cut or written out is accepted in its own spelling too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from approvals.cards.wording import cut
from approvals.schema_form import FieldKind, FormField, form_fields
from runs.models import Round
from runs.requests import OUTCOME_KEY
from runs.round_states import RoundKind
from runs.visible import visible

PLAN_HEADER: Final = "Plan Approval"
"""By this header clients know a plan; it is an accepted key of its answer (m8tes-http 4.1)."""

APPROVE: Final = "Approve"
REVISE: Final = "Revise"

OUTCOMES: Final[Mapping[str, tuple[str, str]]] = {
    "happened": ("It happened", "The call took effect; the run goes on with that."),
    "run_again": ("Run it again", "The call did not take effect, or repeating it does no harm."),
    "stop": ("Stop the run", "Nobody knows, and the run must not go on."),
}
"""Label and description of each answer to a call of unknown result."""

_MAX_TITLE: Final = 300
_MAX_LABEL: Final = 200
_MAX_HELP: Final = 1_000
_MAX_HEADER: Final = 60


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An option: `value` is what it stands for in the answer, `name` its label as it came."""

    label: str
    value: Any
    name: str
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class AskedQuestion:
    """One question. `text` is the key of its answer and unique in its request; `names` are other keys that are taken
    for it. `field` is the field of the form that it asks for; None for our own questions."""

    text: str
    header: str = ""
    multiple: bool = False
    choices: tuple[Choice, ...] = ()
    names: tuple[str, ...] = ()
    help: str = ""
    required: bool = True
    field: FormField | None = None

    def as_json(self) -> dict[str, Any]:
        """In the shape of m8tes-http 2; `description` and `required` are ours, for forms."""
        shape: dict[str, Any] = {
            "question": self.text,
            "header": self.header,
            "multiSelect": self.multiple,
            "options": [
                {"label": choice.label, **({"description": choice.description} if choice.description else {})}
                for choice in self.choices
            ],
        }
        if self.field is not None:
            shape |= {"description": self.help, "required": self.required}
        return shape


def questions_of(round_: Round, key: str) -> tuple[AskedQuestion, ...]:
    """The questions behind one request of a pause that is no approval and no link; those of an agent are one request,
    whatever the key."""
    kind = RoundKind(round_.kind)
    if kind is RoundKind.QUESTION:
        return of_agent(round_.context.get("questions") or [])
    if kind is RoundKind.PLAN:
        return of_plan(str(round_.context.get("text") or ""))
    if kind is RoundKind.OUTCOME:
        return of_outcome(str(round_.requests[OUTCOME_KEY].get("message") or ""))
    return of_form(round_.requests[key].get("requested_schema"))


def of_agent(asked: Sequence[Mapping[str, Any]]) -> tuple[AskedQuestion, ...]:
    """What an agent asks; every choice stands for its index."""
    return _told_apart(
        AskedQuestion(
            text=visible(str(question.get("question") or "")),
            header=visible(str(question.get("header") or "")),
            multiple=bool(question.get("multiSelect")),
            choices=tuple(
                Choice(
                    label=visible(str(option.get("label") or "")),
                    name=str(option.get("label") or ""),
                    value=index,
                    description=visible(str(option.get("description") or "")),
                )
                for index, option in enumerate(question.get("options") or [])
            ),
            names=(str(question.get("question") or ""),),
        )
        for question in asked
    )


def of_plan(text: str) -> tuple[AskedQuestion]:
    """Whether to carry out a plan; the choices stand for the words of its form."""
    question = AskedQuestion(
        text=visible(text),
        header=PLAN_HEADER,
        choices=(
            Choice(label=APPROVE, name=APPROVE, value="approve", description="Carry the plan out."),
            Choice(
                label=REVISE,
                name=REVISE,
                value="revise",
                description="Propose another plan; say what to change.",
            ),
        ),
        names=(PLAN_HEADER, text),
    )
    return (question,)


def of_outcome(message: str) -> tuple[AskedQuestion]:
    """What became of a call."""
    question = AskedQuestion(
        text=visible(message),
        header="Unknown result",
        choices=tuple(
            Choice(label=label, name=word, value=word, description=description)
            for word, (label, description) in OUTCOMES.items()
        ),
        names=(message,),
    )
    return (question,)


def of_form(schema: Any) -> tuple[AskedQuestion, ...]:
    """One question for each field that a server asks for."""
    return _told_apart(_of_field(field) for field in form_fields(schema))


def _of_field(field: FormField) -> AskedQuestion:
    """The title, else the description, else the name asks; what is left of them explains."""
    titled = field.name is None or field.label != field.name or not field.help.strip()
    text = field.label if titled else field.help
    hints = [field.help if titled else "", *field.hints, field.reason]
    return AskedQuestion(
        text=cut(visible(text), _MAX_TITLE),
        header=cut(visible(field.name or field.label), _MAX_HEADER),
        multiple=field.kind is FieldKind.MULTICHOICE,
        choices=_choices(field),
        names=(field.label, *([field.name] if field.name else [])),
        help=cut(visible(" ".join(hint for hint in hints if hint)).replace("\n", " "), _MAX_HELP),
        required=field.required,
        field=field,
    )


def _choices(field: FormField) -> tuple[Choice, ...]:
    if field.kind is FieldKind.BOOLEAN:
        return (Choice(label="Yes", name="true", value=True), Choice(label="No", name="false", value=False))
    found = [
        Choice(label=cut(visible(option.label), _MAX_LABEL), name=option.label, value=option.value)
        for option in field.options
    ]
    labels = _unique([choice.label for choice in found])
    return tuple(replace(choice, label=label) for choice, label in zip(found, labels, strict=True))


def _told_apart(questions: Iterable[AskedQuestion]) -> tuple[AskedQuestion, ...]:
    found = list(questions)
    texts = _unique([question.text for question in found])
    return tuple(replace(question, text=text) for question, text in zip(found, texts, strict=True))


def _unique(texts: Sequence[str]) -> list[str]:
    """The texts, those that stand there before with a number."""
    seen: set[str] = set()
    unique = []
    for text in texts:
        number, fresh = 1, text
        while fresh in seen:
            number += 1
            fresh = f"{text} ({number})"
        seen.add(fresh)
        unique.append(fresh)
    return unique
