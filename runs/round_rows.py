"""Rows of rounds: lock, save as the next version, fail, and say how one ended. No rule about who may answer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from runs import clock, events, prepared, races, recommended, row_writes, write_behind
from runs.closing import refuse_closed
from runs.db import TRIES
from runs.durations import utc_text
from runs.errors import NotAllowed, NotFound
from runs.models import Round, Run, User
from runs.models.run import RunQuerySet
from runs.prepared import Param, Rows
from runs.round_states import RoundOutcome, RoundStatus, must_move

Act = Callable[[Round], None]
"""What is done with a locked round."""
Take = Callable[[str, Act], None]
"""Does it with the round of this id."""

_OF_ID = Param("round", Round._meta.pk)
_LOCKED: Rows[Round] = Rows(
    lambda: (
        Round.objects.select_for_update(of=("self",))
        .select_related("run__account", "turn", "step")
        .filter(pk=_OF_ID)
    )
)
_RUN_LOCKED: Rows[Run] = Rows(lambda: _run_of(_OF_ID).select_for_update())

_CONSTANT = frozenset(
    {
        "id",
        "account",
        "run",
        "turn",
        "step",
        "kind",
        "logical_operation_id",
        "round_index",
        "round_limit",
        "server_name",
        "operation_kind",
        "operation_name",
        "operation_parameters",
        "requests",
        "shown_digest",
        "created_at",
    }
)
"""What a round was opened with."""

_CHANGING = tuple(field.name for field in Round._meta.concrete_fields if field.name not in _CONSTANT)


@dataclass(frozen=True, kw_only=True)
class Decider:
    """Who answers and by which way; `user` is None for a rule, a mode change or the worker itself."""

    user: User | None
    via: str
    name: str = ""


RECOVERY: Final = Decider(user=None, via="recovery")

LOST_CODE: Final = RoundOutcome.RECOVERY_UNAVAILABLE.value
"""Failure code of a round whose session is gone."""


def fail(
    round_: Round,
    outcome: RoundOutcome,
    *,
    code: str,
    message: str,
    decider: Decider,
    at: dt.datetime | None = None,
) -> None:
    """End an unresolved round without delivering an answer; `code` is one per cause, whatever the race.

    `at` is when, for callers with a clock of their own.
    """
    now = at or timezone.now()
    round_.status = RoundStatus.FAILED.value
    round_.outcome = outcome.value
    round_.failure_code, round_.failure_message, round_.failed_at = code, message, now
    round_.held = False
    if round_.decided_by_id is None:
        round_.decided_by, round_.decided_via = decider.user, decider.via
    save(round_, at=now)
    events.record(
        round_.run,
        "round.failed",
        {**facts(round_), "outcome": outcome.value, "code": code, "message": message},
        turn=round_.turn,
        actor=decider.user,
        actor_name=decider.name or decider.via,
    )
    events.announce_round(round_)


def lose(round_: Round, message: str, *, at: dt.datetime | None = None) -> None:
    """End an unresolved round whose session is gone (C35); its turn cannot go on either (`runs.turns.lose`)."""
    outcome = RoundOutcome.RECOVERY_UNAVAILABLE
    fail(round_, outcome, code=LOST_CODE, message=message, decider=RECOVERY, at=at)


def lock(round_id: str) -> Round:
    """The round with its run and turn, which nobody else changes until the transaction ends.
    Raises NotFound, and NotAllowed for a pause of a closed account.

    The run is locked first, as by cancelling and by the worker's fence, so that no two wait for each other; what
    is read after that is as the last change left it. (SQLite transactions are exclusive from their start.)
    """
    locks = [_RUN_LOCKED.asked(round=round_id)] if connection.features.has_select_for_update else []
    *_, found = prepared.together(*locks, *clock.questions(), _LOCKED.asked(round=round_id))
    round_ = _checked(found)
    write_behind.hold(round_.run)
    return round_


def now_and_again(look: Callable[[Take], None]) -> None:
    """Do what follows for other pauses from a change: `look` finds them, and gives each to the function it is given.

    Twice: at once, for those whose runs nobody else has in hand, in the transaction of the change; and right after its
    commit for the rest, each in a transaction of its own. These are pauses somebody was at work on, and those that were
    stored meanwhile, which the change could not see. Who stores a pause looks again after that, too
    (`runs.worker.gating.still_asks`), so one of both sees the other. On SQLite writers take turns, and once is enough.
    """
    look(if_free)
    if connection.features.has_select_for_update:
        transaction.on_commit(lambda: look(_alone), robust=True)


def if_free(round_id: str, act: Act) -> None:
    """`act` on the round, locked as by `lock`, unless somebody else has its run in hand: for whoever holds others."""
    if connection.features.has_select_for_update:
        free = _run_of(round_id).select_for_update(skip_locked=True).first()
        if free is None:
            return
    act(_checked(_LOCKED(round=round_id)))


def _alone(round_id: str, act: Act) -> None:
    """The same in a transaction of its own, which waits for its turn and is begun anew if it loses a race."""
    for tries_left in reversed(range(TRIES)):
        try:
            with transaction.atomic():
                act(lock(round_id))
        except (NotFound, NotAllowed):
            return  # it is gone by now, or its account is closed
        except DatabaseError as error:
            if not tries_left or not races.lost(error):
                raise
        else:
            return


def _run_of(round_id: str | Param) -> RunQuerySet:
    return Run.objects.filter(pk__in=Round.objects.filter(pk=round_id).values("run")).only("pk")


def _checked(found: Sequence[Round]) -> Round:
    if not found:
        raise NotFound("There is no such pause.")
    refuse_closed(found[0].run.account)
    return found[0]


def move(round_: Round, target: RoundStatus, *, at: dt.datetime | None = None) -> bool:
    """One step of the delivery, in strict order (C30), on the row in memory; False if it was made before.

    Raises ManagedInputStateError when a step would be skipped or undone.
    """
    if not must_move(RoundStatus(round_.status), target):
        return False
    round_.status, now = target.value, at or timezone.now()
    if target is RoundStatus.DELIVERY_STARTED:
        round_.delivery_attempts += 1
        round_.delivery_started_at = now
    elif target is RoundStatus.DELIVERED:
        round_.delivered_at = now
    else:
        round_.resolved_at = now
        round_.held = False
    return True


def save(round_: Round, *, at: dt.datetime | None = None) -> None:
    """Store a changed round as its next version."""
    round_.version += 1
    round_.updated_at = at or timezone.now()
    row_writes.save(round_, _CHANGING)


def ending(round_: Round) -> dict[str, Any]:
    """The present state, for whoever came too late (R2, R7)."""
    return {
        "round_id": round_.pk,
        "status": round_.status,
        "outcome": round_.outcome,
        "decided_by": round_.decided_by.get_username() if round_.decided_by else round_.decided_via,
        "decided_at": utc_text(round_.response_validated_at or round_.failed_at or round_.updated_at),
    }


def ended_sentence(round_: Round) -> str:
    """Who came first, in words, for whoever came too late (R2)."""
    if round_.outcome == RoundOutcome.TIMED_OUT:
        return "The deadline of this request has passed. The agent was told that nobody answered."
    if round_.decided_via == recommended.VIA and round_.outcome == RoundOutcome.ANSWERED:
        return (
            "Nobody answered in time, so the run went on with the recommended answer. "
            "Nothing you sent was used; reply to the run to redirect it."
        )
    who = round_.decided_by.get_username() if round_.decided_by else (round_.decided_via or "the run")
    when = round_.response_validated_at or round_.failed_at or round_.updated_at
    words = (round_.outcome or round_.status).replace("_", " ")
    return f"Already decided: {words} by {who} at {when:%H:%M:%S} UTC. Nothing you sent was used."


def facts(round_: Round) -> dict[str, Any]:
    """What every event about a round says of it."""
    return {
        "round_id": round_.pk,
        "kind": round_.kind,
        "step": round_.step.seq if round_.step else None,
        "operation": f"{round_.server_name}:{round_.operation_name}" if round_.operation_name else "",
        "shown_digest": round_.shown_digest,
        **_time_to_answer(round_),
        **({"continue_at": utc_text(round_.continue_at)} if round_.continue_at else {}),
    }


def _time_to_answer(round_: Round) -> dict[str, Any]:
    """The absolute deadline, and how many seconds it left when the round opened (A18); null for ever."""
    if round_.deadline is None:
        return {"deadline": None, "timeout_seconds": None}
    seconds = (round_.deadline - round_.created_at).total_seconds()
    return {"deadline": utc_text(round_.deadline), "timeout_seconds": round(seconds, 3)}
