"""The changes of rows that the store makes, each inside its caller's transaction, with event, hint and wake."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import IntegrityError, transaction

from runs import events, lease, round_rows, rounds, turns
from runs.errors import (
    ManagedInputConflict,
    ManagedInputStateError,
    StateConflict,
)
from runs.managed_input import rows
from runs.models import UNRESOLVED, Round
from runs.round_rows import Decider
from runs.round_states import FAILURE_CODES, RoundOutcome, RoundStatus
from runs.run_states import TurnStatus

PROGRAM: Final = Decider(user=None, via="program")
"""Who changes rounds through the store. Pages show it; owners and tokens they never show (C8)."""

_BEFORE_WORK: Final = frozenset({TurnStatus.QUEUED, TurnStatus.STARTING, TurnStatus.IDLE})


def existing(wanted: Round) -> Round | None:
    """The row that an identical call made before (C11), None if there is nothing in the way.

    Raises ManagedInputConflict for another round under this id, under this index of the operation, or still open
    in it.
    """
    with rows.intact(wanted.pk):
        found = Round.objects.filter(pk=wanted.pk).select_related("run", "turn").first()
    if found is not None:
        if rows.same_round(found, wanted):
            return found
        raise ManagedInputConflict("There is a round with this id already, and it is another one.")
    others = Round.objects.filter(turn=wanted.turn, logical_operation_id=wanted.logical_operation_id)
    if others.filter(round_index=wanted.round_index).exists():
        raise ManagedInputConflict(f"The operation has a round {wanted.round_index} already.")
    if others.pending().exists():
        raise ManagedInputConflict("The operation waits for the answer to another round.")
    return None


def place(wanted: Round) -> Round:
    """Store a new round; its turn begins its work if it had not, and waits (C39).

    Raises ManagedInputStateError if the execution has ended.
    """
    run, turn = wanted.run, wanted.turn
    try:
        if turn.status in _BEFORE_WORK:
            turns.set_status(run, turn, TurnStatus.RUNNING_TURN)
        with transaction.atomic():
            return rounds.place(wanted)
    except StateConflict as error:
        raise ManagedInputStateError(
            f"The execution is {turn.status}; it can ask nothing.", details={"status": turn.status}
        ) from error
    except IntegrityError as error:  # the same id, at the same moment, in another run
        raise ManagedInputConflict("There is a round with this id already, and it is another one.") from error


def renewed(round_: Round, end: dt.datetime, now: dt.datetime) -> None:
    """Move the end of a lease. Not a new version: nothing that a page shows is different."""
    round_.lease_expires_at, round_.updated_at = end, now
    round_.save(update_fields=["lease_expires_at", "updated_at"])


def claimed(round_: Round, target: RoundStatus, owner_id: str, end: dt.datetime, now: dt.datetime) -> None:
    """Give the round to a new owner, under a new token."""
    if target is RoundStatus.DELIVERED and round_.status != target:
        round_.delivered_at = now
    round_.status = target.value
    round_.lease_owner, round_.lease_token, round_.lease_expires_at = owner_id, rows.new_token(), end
    rows.check_lengths(round_)
    _stored(round_, now)


def delivered(round_: Round, target: RoundStatus, now: dt.datetime) -> None:
    """Make one step of the delivery, or none if it was made (C30); after the last one the run goes on."""
    if not round_rows.move(round_, target, at=now):
        return
    _stored(round_, now)
    if target is RoundStatus.RESOLVED:
        lease.wake(round_.run_id)


def failed(round_: Round, code: str, message: str, now: dt.datetime) -> None:
    """End an unresolved round for the reason that `code` names; its turn goes on without it (C33)."""
    outcome = FAILURE_CODES.get(code, RoundOutcome.SUPERSEDED)
    round_.failure_code = code
    rows.check_lengths(round_)
    round_rows.fail(round_, outcome, code=code, message=message, decider=PROGRAM, at=now)
    rounds.settle_turn(round_.run, round_.turn)
    lease.wake(round_.run_id)


def lost(round_: Round, message: str, now: dt.datetime) -> None:
    """The session that held this round is gone: the last such round ends its execution as failed (C35)."""
    run, turn = round_.run, round_.turn
    round_rows.lose(round_, message, at=now)
    if Round.objects.filter(turn=turn, held=True, status__in=UNRESOLVED).exists():
        rounds.settle_turn(run, turn)
    else:
        turns.lose(run, turn, message)
        lease.revoke(run.pk)
    lease.wake(run.pk)


def _stored(round_: Round, now: dt.datetime) -> None:
    round_rows.save(round_, at=now)
    events.announce_round(round_)
