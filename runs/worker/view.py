"""What a worker reads before it acts: one run with its journal, in a handful of queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs import clock, prepared, write_behind
from runs.errors import LeaseLost
from runs.lease import Lease
from runs.models import Round, Run, Step, Turn
from runs.prepared import Asked, Param, Rows
from runs.round_states import RoundStatus
from runs.run_states import TurnStatus
from runs.steps import MCP_KINDS, Entry, Journal, StepKind, TurnJournal
from runs.worker import task_facts

ANSWERED = frozenset({RoundStatus.RESPONSE_VALIDATED.value, RoundStatus.DELIVERY_STARTED.value})
_OVER = [RoundStatus.RESOLVED.value, RoundStatus.FAILED.value]

_OF_RUN = Param("run", Run._meta.pk)
_RUN: Rows[Run] = Rows(lambda: Run.objects.select_related("agent", "account", "end_user").filter(pk=_OF_RUN))
_TURNS: Rows[Turn] = Rows(lambda: Turn.objects.filter(run=_OF_RUN).order_by("index"))
_STEPS: Rows[Step] = Rows(
    lambda: Step.objects.filter(run=_OF_RUN).select_related("call").defer("call__raw_result").order_by("seq")
)
_ROUNDS: Rows[Round] = Rows(lambda: Round.objects.filter(run=_OF_RUN).exclude(status__in=_OVER))


@dataclass(frozen=True, kw_only=True)
class View:
    """The run as of one moment. `steps` are the current turn's; `rounds` are its rounds that are not over."""

    run: Run
    turns: Sequence[Turn]
    turn: Turn | None
    all_steps: Sequence[Step]
    steps: Sequence[Step]
    rounds: Sequence[Round]
    journal: Journal
    forsaken: Sequence[Step]
    """Steps of any turn that have ended before the task that their server works on."""
    at: dt.datetime
    """The moment, by the clock that counts."""
    seen: int
    """The last wake of the run when it was read: this is what it is looked at for."""

    def open_calls(self) -> list[Step]:
        """Operations that could be driven now: open, and waiting neither for a person nor for a server's task."""
        return [step for step in self._ours_to_move() if self._due(step)]

    def rests_until(self) -> dt.datetime | None:
        """When the next look at a server's task is due; None if none is being waited for."""
        wanted = (task_facts.wanted_at(step) for step in [*self._ours_to_move(), *self.forsaken])
        return min((at for at in wanted if at is not None), default=None)

    def unheard_of(self) -> list[Step]:
        """Forsaken tasks whose servers are to be told now."""
        return [step for step in self.forsaken if self._due(step)]

    def _due(self, step: Step) -> bool:
        wanted_at = task_facts.wanted_at(step)
        return wanted_at is None or wanted_at <= self.at

    def _ours_to_move(self) -> list[Step]:
        waiting = {r.step_id for r in self.rounds if r.status == RoundStatus.PENDING and not r.held}
        return [
            step
            for step in self.steps
            if step.result is None and StepKind(step.kind) in MCP_KINDS and step.pk not in waiting
        ]

    def answered(self) -> list[Round]:
        """Answered questions and plans, whose steps can be closed."""
        return [
            round_
            for round_ in self.rounds
            if round_.status in ANSWERED and round_.kind in ("question", "plan")
        ]

    def waits_for_program(self) -> bool:
        """Whether a program opened a round on this turn through the store and has not done with it."""
        return any(round_.step_id is None for round_ in self.rounds)

    def sleeping(self) -> list[Step]:
        return [step for step in self.steps if step.result is None and step.kind == StepKind.SLEEP]


def load(lease: Lease) -> View:
    """Read the run, whose row the transaction has locked; raises LeaseLost if it is no longer this lease's."""
    return loaded(lease, prepared.together(*asked(lease.run_id)))


def asked(run_id: int) -> list[Asked[Any]]:
    """What has to be asked for a view, together with other questions or alone; `loaded` makes it of the answers."""
    return [*(rows.asked(run=run_id) for rows in (_RUN, _TURNS, _STEPS, _ROUNDS)), *clock.questions()]


def loaded(lease: Lease, answers: Sequence[Any]) -> View:
    """What `load` gives and raises."""
    found, all_turns, steps, rounds, *_ = answers
    run = _checked(lease, found)
    write_behind.hold(run)
    turn = next((each for each in all_turns if each.status != TurnStatus.FINISHED), None)
    own = [round_ for round_ in rounds if turn and round_.turn_id == turn.pk]
    return view_of(run, all_turns, turn, steps, own, at=clock.now(), seen=run.wake_seq)


def run_of(lease: Lease) -> Run:
    """The run's row with its agent, account and end user; raises LeaseLost if it is no longer this lease's."""
    return _checked(lease, _RUN(run=lease.run_id))


def _checked(lease: Lease, found: Sequence[Run]) -> Run:
    if not found or found[0].lease_token != lease.token:
        raise LeaseLost(f"Run {lease.run_id} was taken away.")
    return found[0]


def view_of(
    run: Run,
    all_turns: Sequence[Turn],
    turn: Turn | None,
    steps: Sequence[Step],
    rounds: Sequence[Round],
    *,
    at: dt.datetime,
    seen: int,
) -> View:
    """The view that these rows give: every turn and step of the run, the current turn, its rounds that are not over."""
    return View(
        run=run,
        turns=all_turns,
        turn=turn,
        all_steps=steps,
        steps=[step for step in steps if turn and step.turn_id == turn.pk],
        rounds=rounds,
        journal=_journal(run, all_turns, steps, turn),
        forsaken=[step for step in steps if task_facts.forsaken(step) is not None],
        at=at,
        seen=seen,
    )


def _journal(run: Run, all_turns: Sequence[Turn], steps: Sequence[Step], turn: Turn | None) -> Journal:
    last = turn.index if turn else len(all_turns)
    return Journal(
        turns=[
            TurnJournal(
                index=each.index,
                message=each.message,
                definition=each.definition,
                entries=[_entry(step) for step in steps if step.turn_id == each.pk],
            )
            for each in all_turns
            if each.index <= last
        ],
        user_id=run.end_user.user_id if run.end_user else None,
        metadata=run.metadata,
    )


def _entry(step: Step) -> Entry:
    return Entry(
        path=step.path, kind=StepKind(step.kind), bind=step.bind, required=step.required, result=step.result
    )
