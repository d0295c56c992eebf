"""Runs as their shapes need them: one query for the rows, one for their turns, however many there are."""

from __future__ import annotations

from typing import Any

from django.db.models import (
    Case,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)

from runs import access
from runs import row_lookup as lookup
from runs.access import Actor
from runs.api.base import of_scope
from runs.errors import NotFound
from runs.models import Event, Run, Turn
from runs.run_states import Outcome, TurnStatus
from runs.serializers import RunLine, RunShape
from runs.serializers.runs import Archived, Sort, StatusFilter

LONG = sorted(RunShape().fields.keys() - RunLine().fields.keys() - {"files"})
"""Columns that only a run in full shows."""

_STATUS: dict[str, Q] = {
    StatusFilter.RUNNING: ~Q(status__in=[TurnStatus.WAITING_FOR_INPUT.value, TurnStatus.FINISHED.value]),
    StatusFilter.AWAITING_APPROVAL: Q(status=TurnStatus.WAITING_FOR_INPUT.value),
    StatusFilter.COMPLETED: Q(outcome=Outcome.COMPLETED.value),
    StatusFilter.FAILED: Q(
        outcome__in=[Outcome.FAILED.value, Outcome.TIMED_OUT.value, Outcome.INTERRUPTED.value]
    ),
    StatusFilter.CANCELLED: Q(outcome=Outcome.CANCELLED.value),
}
_NONE = Q(pk__in=[])
_OPEN = ~Q(status=TurnStatus.FINISHED.value)
_NEVER_BEGUN = Q(outcome=Outcome.CANCELLED.value, started_at=None, index__gt=0)


def rows(actor: Actor) -> QuerySet[Run]:
    """The account's runs with what RunLine reads beside the columns."""
    turns = Turn.objects.filter(_OPEN | _NEVER_BEGUN).order_by("index")
    began = Turn.objects.filter(run=OuterRef("pk"), started_at__isnull=False).order_by().values("run")
    return (
        access.visible(actor, Run.objects.select_related("end_user", "task", "parent"))
        .prefetch_related(
            Prefetch("turns", turns.only("run", "index", "outcome", "started_at"), to_attr="open_turns")
        )
        .annotate(
            first_started_at=Subquery(began.values_list(Min("started_at"))),
            last_started_at=Subquery(began.values_list(Max("started_at"))),
            last_activity_at=Subquery(
                Event.objects.filter(run=OuterRef("pk"), seq=OuterRef("event_seq")).values("at")[:1]
            ),
        )
    )


def one(actor: Actor, run_id: int) -> Run:
    """One of `rows`, for who polls. Raises NotFound.

    Three lookups, because for a single row nearly all of the price of the large query is writing its SQL: what only few
    runs have (end user, task, parent) is looked up where it is there, and of the turns three columns are read.
    """
    run = access.one(actor, Run, run_id)
    turns = lookup.rows(Turn, "index", "outcome", "started_at", run_id=run_id, order_by="index")
    began = [turn.started_at for turn in turns if turn.started_at is not None]
    last = lookup.row(Event, "at", run_id=run_id, seq=run.event_seq)
    never_begun = (Outcome.CANCELLED.value, None)
    shown = {
        "open_turns": [
            turn
            for turn in turns
            if turn.outcome is None or (turn.index and (turn.outcome, turn.started_at) == never_begun)
        ],
        "first_started_at": min(began, default=None),
        "last_started_at": max(began, default=None),
        "last_activity_at": last and last.at,
    }
    for name, value in shown.items():
        setattr(run, name, value)
    return run


def page(actor: Actor, query: dict[str, Any]) -> QuerySet[Run]:
    """The runs that a checked RunQuery asks for, in its order, from its cursor on.

    Raises NotFound for a cursor that is no run of the account.
    """
    found = rows(actor)
    if "user_id" in query or not query["include_end_user_runs"]:
        found = of_scope(found, query)
    for name, column in (("teammate_id", "agent"), ("agent_id", "agent"), ("task_id", "task")):
        if name in query:
            found = found.filter(**{column: query[name]})
    if "status" in query:
        found = found.filter(_STATUS.get(query["status"], _NONE))
    if query["archived"] == Archived.ONLY:
        found = found.filter(_NONE)
    if "fields" in query:
        found = found.defer(*LONG)
    after: int | None = query.get("starting_after")
    if query["sort"] == Sort.PRIORITY:
        return _waiting_first(actor, found, after)
    return found.filter(pk__lt=after).order_by("-pk") if after is not None else found.order_by("-pk")


def _waiting_first(actor: Actor, found: QuerySet[Run], after: int | None) -> QuerySet[Run]:
    """Where the cursor stands is decided by what its run is doing now, so a page may show a run again or miss one."""
    waiting = TurnStatus.WAITING_FOR_INPUT.value
    found = found.annotate(
        rank=Case(When(status=waiting, then=Value(0)), default=Value(1), output_field=IntegerField())
    ).order_by("rank", "-pk")
    if after is None:
        return found
    mark = access.visible(actor, Run.objects.filter(pk=after)).values_list("status", flat=True).first()
    if mark is None:
        raise NotFound(f"There is no run {after}, after which the list could go on.")
    rank = 0 if mark == waiting else 1
    return found.filter(Q(rank__gt=rank) | Q(rank=rank, pk__lt=after))
