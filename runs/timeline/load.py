"""What the timeline reads: five queries for any window, and never a large value as a whole."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q, QuerySet, TextField, Value
from django.db.models.fields.json import KT, KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, NullIf, Substr

from runs.models import Event, Round, Run, Step
from runs.steps import StepKind

WINDOW = 100
"""Steps of one page."""

LIMIT = 12_000
"""Characters of one text that a row holds; the rest is one link away."""

NOTES = {
    "tool_call.restarted",
    "tool_call.repeated",
    "tool_call.resumed",
    "tool_call.run_again",
    "tool_call.answers_reused",
    "tool_call.task",
    "tool_call.task_cancelled",
    "tool_call.unknown",
    "round.late_answer",
}
"""Events that are told inside the row of their step."""

LINES = {"run.started", "run.message", "run.mode"}
"""Events with a row of their own, beside the ends of turns."""

ENDS = {"run.completed", "run.failed", "run.timed_out", "run.cancelled", "run.interrupted"}

SLACK = dt.timedelta(seconds=2)
"""Clocks of two processes may differ; a row that is sent once more is simply the same again."""

Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """The raw material of a window."""

    run: Run
    steps: Sequence[Facts]
    rounds: Sequence[Facts]
    events: Sequence[Facts]
    notes: Sequence[Facts]
    children: Sequence[Facts]
    earlier: int | None


def window(run: Run, *, before: int | None = None) -> Loaded:
    """The newest `WINDOW` steps, or those before step number `before`, with the events of the same time."""
    steps = _steps(run)
    if before is not None:
        steps = steps.filter(seq__lt=before)
    found = list(reversed(steps.order_by("-seq")[: WINDOW + 1]))
    more = len(found) > WINDOW
    found = found[-WINDOW:]
    lines = _events(run).filter(type__in=LINES | ENDS)
    if more:
        lines = lines.filter(at__gte=found[0]["created_at"])
    if before is not None:
        start = (
            Step.objects.filter(run=run, seq__gte=before).order_by("seq").values_list("created_at", flat=True)
        )
        lines = lines.filter(at__lt=start[:1])
    return _with_parts(run, found, list(lines), found[0]["seq"] if more else None)


def changes(run: Run, *, after: int) -> Loaded:
    """Rows that may have changed since event number `after`: recent ones, and all that are open."""
    since = _events(run).filter(seq__lte=after).order_by("-seq").values_list("at", flat=True).first()
    moved = Q(result__isnull=True)
    lines = _events(run).filter(type__in=LINES | ENDS, seq__gt=after)
    if since is not None:
        start = since - SLACK
        moved |= Q(created_at__gte=start) | Q(finished_at__gte=start) | Q(rounds__updated_at__gte=start)
    touched = Step.objects.filter(moved, run=run).values("pk")
    return _with_parts(run, list(_steps(run).filter(pk__in=touched).order_by("seq")), list(lines), None)


def _with_parts(run: Run, steps: Sequence[Facts], lines: Sequence[Facts], earlier: int | None) -> Loaded:
    pks = [step["pk"] for step in steps]
    seqs = [step["seq"] for step in steps]
    notes = _events(run).filter(type__in=NOTES, payload__step__in=seqs)
    return Loaded(
        run=run,
        steps=steps,
        rounds=list(_rounds(pks)),
        events=lines,
        notes=list(notes) if seqs else [],
        children=list(_children(pks)),
        earlier=earlier,
    )


def _steps(run: Run) -> QuerySet[Step, Any]:
    """All steps but the last word of a turn, which its end repeats."""
    return (
        Step.objects.filter(run=run)
        .exclude(kind=StepKind.FINISH.value)
        .annotate(
            text=_head(KT("params__text")),
            child_agent=KT("params__agent"),
            seconds=KT("params__seconds"),
            revision=KT("params__revision"),
            questions=_head(Cast("params__questions", TextField())),
            status=KT("result__status"),
            error=_told("result__error"),
            value=_head(KT("result__result")),
            bytes_cut=KT("result__result__bytes"),
            value_head=_head(KT("result__result__head")),
            answers=_head(Cast("result__answers", TextField())),
            asked=_head(Cast("call__asked", TextField())),
            edited=_head(Cast("call__edited", TextField())),
            progress=_progress("value"),
            progress_total=_progress("total"),
            progress_message=_progress("message"),
        )
        .values(
            "pk",
            "seq",
            "kind",
            "created_at",
            "finished_at",
            "text",
            "child_agent",
            "seconds",
            "revision",
            "questions",
            "status",
            "error",
            "value",
            "bytes_cut",
            "value_head",
            "answers",
            "asked",
            "edited",
            "progress",
            "progress_total",
            "progress_message",
            "call__server_name",
            "call__operation",
            "call__name",
            "call__phase",
            "call__verdict",
            "call__attempts",
            "call__leg",
            "call__sent_at",
        )
    )


def _head(text: Any) -> Substr:
    """The first `LIMIT` characters and one more, which tells that there is more."""
    return Substr(text, 1, LIMIT + 1)


def _told(path: str) -> Substr:
    """Like `_head`, for a text that may be null: SQLite reads a JSON null as the word."""
    return _head(NullIf(KT(path), Value("null")))


def _progress(what: str) -> NullIf:
    """A part of the last progress note of a call."""
    part = KeyTextTransform(what, KeyTransform("progress", F("call__wire")))
    return NullIf(part, Value("null"), output_field=TextField())


def _rounds(step_pks: Sequence[int]) -> QuerySet[Round, Any]:
    return (
        Round.objects.filter(step__in=step_pks)
        .annotate(
            asked=_head(Cast("requests", TextField())),
            given=_head(Cast("responses", TextField())),
            allowed_by=_told("context__allowed_by__text"),
            allowed_rule=_told("context__allowed_by__rule_id"),
            remembered=_told("context__remembered__text"),
            remembered_rule=_told("context__remembered__rule_id"),
        )
        .order_by("created_at")
        .values(
            "pk",
            "step_id",
            "kind",
            "status",
            "outcome",
            "version",
            "asked",
            "given",
            "allowed_by",
            "allowed_rule",
            "remembered",
            "remembered_rule",
            "note",
            "deadline",
            "failure_message",
            "decided_by__username",
            "decided_via",
            "created_at",
            "response_validated_at",
            "failed_at",
        )
    )


def _events(run: Run) -> QuerySet[Event, Any]:
    return (
        Event.objects.filter(run=run)
        .annotate(
            step=KT("payload__step"),
            message=_told("payload__message"),
            output=_told("payload__output"),
            error=_told("payload__error"),
            reason=_told("payload__reason"),
            old=KT("payload__from"),
            new=KT("payload__to"),
            turn_index=KT("payload__turn"),
        )
        .order_by("seq")
        .values(
            "seq",
            "type",
            "at",
            "actor_name",
            "step",
            "message",
            "output",
            "error",
            "reason",
            "old",
            "new",
            "turn_index",
        )
    )


def _children(step_pks: Sequence[int]) -> QuerySet[Run, Any]:
    return Run.objects.filter(parent_step__in=step_pks).values(
        "pk", "parent_step_id", "agent__name", "status", "outcome"
    )
