"""The permission requests of one run: all of them in order, or one by its id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from approvals.permission_requests import PENDING, PermissionRequest, ask_id, request_of_ask, requests_of
from approvals.request_refusals import GateNotFound
from runs.asked import QUESTION_TOOL
from runs.models import Round, Run, Step
from runs.models.round import RoundQuerySet
from runs.steps import StepKind

_MAX_SPLITS: Final = 20
"""Where a pause's id may end and a key begin: both may have colons."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A request with the pause behind it; None: an ask that did not wait."""

    request: PermissionRequest
    round_: Round | None


def all_requests(run: Run) -> list[PermissionRequest]:
    """Every request of the run in every state, oldest first; those of one pause in its own order."""
    asked = [request_of_ask(run, step) for step in _asks(run)]
    paused = [request for round_ in _rounds(run) for request in requests_of(round_)]
    return sorted([*asked, *paused], key=lambda request: request.created_at)


def find(run: Run, request_id: str) -> Found:
    """The request with this id. Raises GateNotFound."""
    for round_ in _rounds(run).filter(pk__in=_prefixes(request_id)):
        for request in requests_of(round_):
            if request.request_id == request_id:
                return Found(request=request, round_=round_)
    by_itself = re.fullmatch(rf"{re.escape(ask_id(run.pk, 0))[:-1]}(\d{{1,9}})", request_id)
    step = _asks(run).filter(seq=int(by_itself[1])).first() if by_itself else None
    if step is None:
        raise GateNotFound(
            f"Run {run.pk} has no such request. List its permissions for those that there are."
        )
    return Found(request=request_of_ask(run, step), round_=None)


def all_asks(run: Run) -> list[Found]:
    """Every question of the run's agent and form of its servers, oldest first."""
    asked = [Found(request=request_of_ask(run, step), round_=None) for step in _asks(run)]
    paused = [
        Found(request=request, round_=round_) for round_ in _rounds(run) for request in requests_of(round_)
    ]
    found = [each for each in [*asked, *paused] if each.request.tool_name == QUESTION_TOOL]
    return sorted(found, key=lambda each: each.request.created_at)


def waiting(run: Run) -> list[Found]:
    """What still waits for a person, oldest first."""
    return [
        Found(request=request, round_=round_)
        for round_ in _rounds(run).pending()
        for request in requests_of(round_)
        if request.status == PENDING
    ]


def _rounds(run: Run) -> RoundQuerySet:
    return Round.objects.filter(run=run).for_cards().select_related("run__task").order_by("created_at", "pk")


def _asks(run: Run) -> QuerySet[Step]:
    """Asks that did not wait."""
    return Step.objects.filter(run=run, kind=StepKind.ASK.value, params__blocking=False).order_by("seq")


def _prefixes(request_id: str) -> list[str]:
    ends = [match.start() for match in re.finditer(":", request_id)][:_MAX_SPLITS]
    return [request_id, *(request_id[:end] for end in ends)]
