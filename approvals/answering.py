"""Answering a question as m8tes clients do: the rules of m8tes-http 4.1 over the services of the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import transaction

from approvals import decisions
from approvals.asked_questions import AskedQuestion, of_agent, questions_of
from approvals.permission_requests import PENDING
from approvals.question_answers import Answers, Unread, content_of, knows
from approvals.request_refusals import (
    AutoContinued,
    NotAwaitingInput,
    UnknownQuestion,
    UseApprove,
)
from approvals.run_requests import Found, all_asks, find, waiting
from runs import access
from runs.access import Actor
from runs.asked import QUESTION_TOOL
from runs.errors import ManagedInputValidationError, StateConflict
from runs.models import Role, Round, Run
from runs.round_rows import ended_sentence, ending, lock
from runs.round_states import RoundKind
from runs.run_states import TurnStatus

_BY_ITSELF: Final = (
    "The run went on with an answer of its own, because nobody answered in time or the agent did not wait. "
    "Reply to the run to redirect it."
)


def answer(
    actor: Actor, run_id: int, answers: Answers, *, request_id: str | None = None, via: str = "api"
) -> bool:
    """Answer one ask of a run: the one with this id, else the oldest that waits. Whether the run goes on by that.

    One answer of a pause that asks for several things is kept until the last one is there. Raises NotFound, NotAllowed,
    ManagedInputValidationError with the questions whose answers do not fit, and what `approvals.request_refusals`
    names. Then nothing has changed.
    """
    run = access.get(actor, Run.objects.all(), pk=run_id)
    actor.require(Role.OPERATOR)
    found = find(run, request_id) if request_id is not None else None
    if found is not None and found.request.tool_name != QUESTION_TOOL:
        raise UseApprove("This is no question. Allow or deny it; it is not answered.")
    found = found or _oldest(run, answers)
    if found.request.auto_resolved:
        raise AutoContinued(_BY_ITSELF)
    if found.round_ is None or run.status != TurnStatus.WAITING_FOR_INPUT:
        raise _not_awaited(run, found)
    with transaction.atomic():
        lock(found.round_.pk)
        found = find(run, found.request.request_id)  # as it is now that nobody else can change it
        late = _refusal(run, found) or _send(actor, run, found, answers, via)
        resumed = found.round_ is not None and not _waits(found.round_)
    if late is not None:
        raise late
    return resumed


def _oldest(run: Run, answers: Answers) -> Found:
    """The oldest ask that waits; if none does, the latest of these questions, to say what became of it."""
    found = next((each for each in waiting(run) if each.request.tool_name == QUESTION_TOOL), None)
    if found is not None:
        return found
    for ask in reversed(all_asks(run)):
        if ask.request.auto_resolved and knows(_questions(ask), answers):
            return ask
    raise _not_awaited(run, None)


def _questions(found: Found) -> tuple[AskedQuestion, ...]:
    if found.round_ is not None:
        return questions_of(found.round_, found.request.key)
    return of_agent((found.request.tool_input or {})["questions"])


def _not_awaited(run: Run, found: Found | None) -> StateConflict:
    if found is not None and found.round_ is not None and found.request.status != PENDING:
        return NotAwaitingInput(ended_sentence(found.round_), details=ending(found.round_))
    return NotAwaitingInput(
        f"Run {run.pk} waits for no answer now. Reply to it to say something.", details={"status": run.status}
    )


def _refusal(run: Run, found: Found) -> StateConflict | None:
    """Why an ask that was looked at without a lock can no longer be answered."""
    if found.request.auto_resolved:
        return AutoContinued(_BY_ITSELF)
    return None if found.request.status == PENDING else _not_awaited(run, found)


def _send(actor: Actor, run: Run, found: Found, answers: Answers, via: str) -> StateConflict | None:
    """Store the answer. If its time has passed, return the refusal, because how the pause ended has to be kept."""
    round_ = found.round_
    if round_ is None:
        raise TypeError("an ask that did not wait is not answered")
    responses = _responses(round_, found.request.key, answers)
    try:
        if len(responses) < len(round_.requests):
            decisions.save_draft(actor, round_.pk, found.request.key, responses[found.request.key], via=via)
        else:
            key = f"m8tes:{found.request.request_id}"
            decisions.decide(actor, round_.pk, responses, idempotency_key=key, via=via)
    except StateConflict as late:
        now = find(run, found.request.request_id)
        return _refusal(run, now) or NotAwaitingInput(late.message, details=late.details)
    except ManagedInputValidationError as error:
        raise _located(error, questions_of(round_, found.request.key)) from error
    return None


def _located(
    error: ManagedInputValidationError, questions: Iterable[AskedQuestion]
) -> ManagedInputValidationError:
    """The same refusal, with the texts of the questions where the paths have names of fields."""
    texts = {question.field.name: question.text for question in questions if question.field is not None}
    fields = []
    for field in error.details.get("fields") or []:
        name, *below = field.get("path") or [None]
        path = [texts[name], *below] if name in texts else [name, *below] if name is not None else []
        fields.append({**field, "path": ["answers", *path]})
    return ManagedInputValidationError(error.message, details={**error.details, "fields": fields})


def _responses(round_: Round, key: str, answers: Answers) -> dict[str, Mapping[str, Any]]:
    """The responses that accept the requests of this ask. Raises UnknownQuestion, ManagedInputValidationError."""
    kind = RoundKind(round_.kind)
    contents = content_of(kind, questions_of(round_, key), answers)
    if isinstance(contents, Unread):
        raise _unread(contents)
    keys: Iterable[str] = round_.requests if kind is RoundKind.QUESTION else [key]
    return {
        each: {"action": "accept", "content": content} for each, content in zip(keys, contents, strict=True)
    }


def _unread(unread: Unread) -> UnknownQuestion | ManagedInputValidationError:
    if unread.unknown:
        message = "It is the text of no question of this request."
        fields = [{"path": ["answers", key], "message": message} for key in unread.unknown]
        return UnknownQuestion(
            "An answer stands under the text of its question. Take the texts from the permissions of the run.",
            details={"fields": fields},
        )
    fields = [{"path": ["answers", text], "message": message} for text, message in unread.wrong.items()]
    return ManagedInputValidationError(
        "The answers do not fit. Correct the fields named.", details={"fields": fields}
    )


def _waits(round_: Round) -> bool:
    return Round.objects.filter(turn=round_.turn_id).pending().exists()
