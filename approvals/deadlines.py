"""More time for a pause (R32)."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import transaction

from runs import access, clock, events
from runs.access import Actor
from runs.errors import StateConflict
from runs.models import Role, Round
from runs.round_rows import ended_sentence, ending, facts, lock, save
from runs.round_states import RoundStatus

EXTENSION: Final = dt.timedelta(minutes=15)


@transaction.atomic
def extend(actor: Actor, round_id: str) -> Round:
    """Move the end of a pending pause by EXTENSION, as `actor`: its deadline, and when a question goes on by itself.

    Raises NotFound, NotAllowed, and StateConflict when the pause is over, overdue, or waits for ever anyway.
    """
    access.get(actor, Round.objects.all(), pk=round_id)
    actor.require(Role.OPERATOR)
    round_ = lock(round_id)
    if round_.status != RoundStatus.PENDING:
        raise StateConflict(ended_sentence(round_), details=ending(round_))
    if round_.ends_at is None:
        raise StateConflict(
            "This request waits without a limit; there is nothing to extend.", details=ending(round_)
        )
    if round_.ends_at <= clock.now():
        raise StateConflict("The deadline of this request has passed.", details=ending(round_))
    try:
        round_.deadline = _later(round_.deadline)
        round_.continue_at = _later(round_.continue_at)
    except OverflowError as error:  # a program may set any date
        raise StateConflict("The calendar ends before that.", details=ending(round_)) from error
    save(round_)
    events.record(round_.run, "round.extended", facts(round_), turn=round_.turn, actor=actor.user)
    events.announce_round(round_)
    return round_


def _later(end: dt.datetime | None) -> dt.datetime | None:
    return end + EXTENSION if end is not None else None
