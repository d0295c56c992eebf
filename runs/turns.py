"""The life of a turn: its status, its end, and what that means for its run and for the run that waits on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Case, F, IntegerField, Q, When
from django.utils import timezone

from runs import audit, events, lease, round_rows, row_writes
from runs.errors import ManagedInputRecoveryError
from runs.models import UNRESOLVED, Round, Run, Step, ToolCall, Turn
from runs.prepared import Param, Rows, Update
from runs.round_states import RoundOutcome, RoundStatus
from runs.run_states import CallPhase, Outcome, TurnStatus, check_turn_transition
from runs.steps import MCP_KINDS

OPEN_PHASES = [CallPhase.PREPARED.value, CallPhase.INPUT_REQUIRED.value]

_OF_RUN, _OF_TURN = Param("run", Run._meta.pk), Param("turn", Turn._meta.pk)
_UNFINISHED: Rows[Turn] = Rows(
    lambda: Turn.objects.filter(run=_OF_RUN).exclude(status=TurnStatus.FINISHED.value).order_by("index")[:1]
)
_IS_FINISHED = Q(status=TurnStatus.FINISHED.value)
_COUNTS: Rows[Turn] = Rows(
    lambda: Turn.objects.filter(run=_OF_RUN).order_by(
        Case(When(_IS_FINISHED, then=1), default=0),  # an unfinished one before any other
        Case(When(_IS_FINISHED, then=-F("index")), default=F("index"), output_field=IntegerField()),
    )[:1]
)
_OPEN_ROUNDS: Rows[Round] = Rows(
    lambda: Round.objects.filter(turn=_OF_TURN, status__in=UNRESOLVED).select_related("run", "turn", "step")
)
_END_CALLS = Update(
    lambda: (
        ToolCall.objects.filter(step__turn=_OF_TURN, phase__in=OPEN_PHASES),
        {"phase": CallPhase.FAILED.value, "allowed": False},
    )
)
_LOSE_CALLS = Update(
    lambda: (
        ToolCall.objects.filter(step__turn=_OF_TURN, phase=CallPhase.SENT.value, raw_result__isnull=True),
        {"phase": CallPhase.UNKNOWN.value},
    )
)
_CLOSE_STEPS = Update(
    lambda: (
        Step.objects.filter(turn=_OF_TURN, result__isnull=True),
        {
            "result": Param.of(Step, "result"),
            "finished_at": Param.of(Step, "finished_at", "now"),
        },
    )
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """All that a run consists of, for whoever holds it and has read it in the same transaction."""

    turns: Sequence[Turn]
    steps: Sequence[Step]
    rounds: Sequence[Round]
    """Those of the turn that are not over."""


def set_status(run: Run, turn: Turn, status: TurnStatus) -> None:
    """Move the turn on and bring the run's own status in line; a turn that is there already is left alone."""
    old = TurnStatus(turn.status)
    if old is status:
        return
    check_turn_transition(old, status)
    turn.status = status.value
    if status is TurnStatus.RUNNING_TURN and turn.started_at is None:
        turn.started_at = timezone.now()
    row_writes.save(turn, ("status", "started_at"))
    if turn.index == 0:  # the first one, while it is unfinished, is the oldest that is
        _adopt(run, turn)
    else:
        sync(run)


def current(run: Run) -> Turn | None:
    """The oldest unfinished turn: the one to advance."""
    return _UNFINISHED.first(run=run.pk)


def sync(run: Run, turns: Sequence[Turn] | None = None) -> None:
    """The run's status is that of its oldest unfinished turn, else of the latest (design section 2).

    `turns` are all of the run's, in their order, if they are known.
    """
    if turns is None:
        turns = _COUNTS(run=run.pk)
    turn = next((each for each in turns if each.status != TurnStatus.FINISHED), turns[-1] if turns else None)
    if turn is not None:
        _adopt(run, turn)


def _adopt(run: Run, turn: Turn) -> None:
    run.status, run.outcome = turn.status, turn.outcome
    run.error, run.error_code = turn.error, turn.error_code
    if turn.outcome is not None:  # while a later turn is at work, the last output stands
        run.output = turn.output
    row_writes.save(run, ("status", "outcome", "output", "error", "error_code", "updated_at"))


def finish(
    run: Run,
    turn: Turn,
    outcome: Outcome,
    *,
    output: str | None = None,
    error: str | None = None,
    error_code: str | None = None,
    decider: round_rows.Decider | None = None,
    known: Known | None = None,
) -> None:
    """End a turn once and for all: close what is open in it, write the result, tell the waiting parent, note the head.

    The caller holds the run (fence) or takes it away (`lease.revoke`) in the same transaction; what it has `known` of
    the run is not asked again.
    """
    decider = decider or round_rows.Decider(user=None, via=events.WORKER)
    if known is None or known.rounds:
        close_rounds(turn, outcome, decider)
    if known is None or any(step.result is None or step.kind in MCP_KINDS for step in known.steps):
        _close_steps(turn, outcome, error)
    turn.status, turn.outcome = TurnStatus.FINISHED.value, outcome.value
    turn.output, turn.error, turn.error_code = output, error, error_code
    turn.finished_at = timezone.now()
    row_writes.save(turn, ("status", "outcome", "output", "error", "error_code", "finished_at"))
    run.outcome = None  # until sync has looked at what remains
    sync(run, known.turns if known else None)
    events.record(
        run,
        f"run.{outcome.value}",
        {"turn": turn.index, "output": output, "error": error, "error_code": error_code},
        turn=turn,
        actor=decider.user,
        actor_name=decider.name or decider.via,
    )
    _tell_parent(run, turn)
    audit.note_head(run)


def lose(run: Run, turn: Turn, message: str) -> None:
    """End a turn as failed because the session that it waited on is gone (C35). The caller holds the run as in
    `finish`."""
    code = ManagedInputRecoveryError.code
    finish(run, turn, Outcome.FAILED, error=message, error_code=code, decider=round_rows.RECOVERY)


def close_rounds(turn: Turn, outcome: Outcome, decider: round_rows.Decider) -> None:
    """Fail every unresolved round of an ending turn, with one code per cause."""
    cancelled = outcome is Outcome.CANCELLED
    for round_ in _OPEN_ROUNDS(turn=turn.pk):
        if round_.status == RoundStatus.DELIVERED:
            round_.status, round_.resolved_at = RoundStatus.RESOLVED.value, timezone.now()
            round_rows.save(round_)
            events.announce_round(round_)
            continue
        round_rows.fail(
            round_,
            RoundOutcome.CANCELLED if cancelled else RoundOutcome.SUPERSEDED,
            code="cancelled" if cancelled else "superseded",
            message="The run was cancelled." if cancelled else "The turn ended while this was open.",
            decider=decider,
        )


def _close_steps(turn: Turn, outcome: Outcome, error: str | None) -> None:
    """No step stays open in a finished turn; a call that is in flight keeps the truth: unknown."""
    word = "cancelled" if outcome is Outcome.CANCELLED else "failed"
    _END_CALLS.later(turn=turn.pk)
    _LOSE_CALLS.later(turn=turn.pk)
    closing = {"status": word, "result": None, "error": error or f"The turn ended as {outcome.value}."}
    _CLOSE_STEPS.later(turn=turn.pk, result=closing, now=timezone.now())


def _tell_parent(run: Run, turn: Turn) -> None:
    """A child run's first turn is what its parent's step waits for."""
    if turn.index != 0 or run.parent_step_id is None:
        return
    status = {Outcome.COMPLETED.value: "done", Outcome.CANCELLED.value: "cancelled"}.get(
        turn.outcome or "", "failed"
    )
    Step.objects.filter(pk=run.parent_step_id, result__isnull=True).update(
        result={"status": status, "result": turn.output, "error": turn.error, "run_id": run.pk},
        finished_at=timezone.now(),
    )
    if run.parent_id is not None:
        lease.wake(run.parent_id)
