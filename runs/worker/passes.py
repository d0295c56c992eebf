"""One pass over a run's journal is one transaction: everything that needs neither a server nor a person.

It settles what was answered, asks the harness, stores what it proposes, and asks again, until a call is to be driven or
nothing is left to do. Then the run is given back in the same transaction, so that a pause, and going on after it, cost
one commit each. A pass that fails leaves nothing behind.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from runs import binding, clock, lease, prepared, write_behind
from runs.harnesses import get_harness
from runs.lease import Lease
from runs.live_sessions import SESSION
from runs.models import Step
from runs.run_states import TurnStatus
from runs.steps import MCP_KINDS, Proposal, StepKind
from runs.turns import Known
from runs.worker import journal
from runs.worker.view import View, asked, load, loaded, view_of

MOST = 50
"""How often the harness is asked within one transaction; a playbook that talks for longer goes on in the next one."""


@dataclass(frozen=True, kw_only=True)
class Parked:
    """The run was given back."""

    newer_wake: bool
    """Somebody woke it meanwhile: it is to be claimed again."""
    sleeps_until: dt.datetime | None
    """When it wants to be woken; None: whenever something happens to it."""


def begin(run_id: int, owner: str) -> tuple[Lease, View | Parked] | None:
    """Claim a run and make the first pass; None if it is not due. Raises what `lease.claim` raises.

    A run whose servers only another process offers is not claimed: it stays due, and that one's sweep finds it.
    Where a session was left behind, its end comes first, and no pass is made.
    """
    with write_behind.kept():
        # A server is asked before it is known whether the run may be claimed: all of it is one round trip.
        early = asked(run_id) if clock.is_shared() else []
        unreachable, row, *answers = prepared.together(
            binding.needs(run_id), lease.claiming(run_id, owner), *early
        )
        held = lease.claimed(run_id, owner, row)
        if held is None:
            return None
        if unreachable:
            lease.give_up(held)
            return None
        view = loaded(held, answers) if early else load(held)
        return held, view if left_behind(view) else _pass(held, view, busy=False)


def left_behind(view: View) -> bool:
    """Whether a call that is over has left a session to be ended."""
    return any(
        step.result is not None and SESSION in step.call.wire
        for step in view.all_steps
        if StepKind(step.kind) in MCP_KINDS
    )


def go_on(held: Lease, *, busy: bool) -> View | Parked:
    """Make another pass; while calls are at work (`busy`) the harness is not asked. Raises LeaseLost."""
    lease.fence(held)
    with write_behind.kept():
        return _pass(held, load(held), busy=busy)


def _pass(held: Lease, view: View, *, busy: bool) -> View | Parked:
    """The view of what is left to do outside of a transaction, unless the run was parked."""
    for _ in range(MOST):
        if view.unheard_of():
            return view
        if view.turn is None:
            return _park(held, view)
        view = _settled(view)
        if busy or view.open_calls():
            return view
        proposals = _proposals(view)
        if not proposals:
            return _park(held, view)
        view = _applied(view, proposals)
        if view.turn is None and not _is_over(view):
            return view
    return view


def _proposals(view: View) -> Sequence[Proposal]:
    if view.turn is None or view.waits_for_program():
        return []
    return get_harness(view.turn.harness).next_steps(view.journal)


def _settled(view: View) -> View:
    """Close steps whose answer or time has come."""
    steps = {step.pk: step for step in view.steps}
    answered = view.answered()
    rested = [step for step in view.sleeping() if until(step) <= view.at]
    for round_ in answered:
        if round_.step_id is not None and view.turn is not None:
            journal.settle(view.run, view.turn, round_, steps[round_.step_id])
    for step in rested:
        journal.close_step(step, {"status": "done"})
    if not answered and not rested:
        return view
    rounds = [round_ for round_ in view.rounds if round_ not in answered]
    return view_of(view.run, view.turns, view.turn, view.all_steps, rounds, at=view.at, seen=view.seen)


def _applied(view: View, proposals: Sequence[Proposal]) -> View:
    """The view with the new steps. Without a turn once that has ended: what ended with it is for the next pass."""
    assert view.turn is not None  # noqa: S101 - only a turn is asked for proposals
    known = Known(turns=view.turns, steps=view.all_steps, rounds=view.rounds)
    new = journal.apply(view.run, view.turn, proposals, known)
    steps = [*view.all_steps, *new]
    # The clock is a question to the server: asked again only where a sleep may be over as soon as it begins.
    at = clock.now() if any(step.kind == StepKind.SLEEP for step in new) else view.at
    if view.turn.status == TurnStatus.FINISHED:
        return view_of(view.run, view.turns, None, steps, [], at=at, seen=view.seen)
    return view_of(view.run, view.turns, view.turn, steps, view.rounds, at=at, seen=view.seen)


def _is_over(view: View) -> bool:
    """Whether a run whose turn has just ended has nothing left: no message that waits, no call to wind up."""
    return all(turn.status == TurnStatus.FINISHED for turn in view.turns) and not any(
        StepKind(step.kind) in MCP_KINDS for step in view.all_steps
    )


def _park(held: Lease, view: View) -> Parked:
    rests = [*(until(step) for step in view.sleeping()), view.rests_until()]
    wanted = min((at for at in rests if at is not None), default=None)
    newer = journal.park(held, view.seen, wanted)
    return Parked(newer_wake=newer, sleeps_until=wanted)


def until(step: Step) -> dt.datetime:
    """When a sleep ends."""
    return dt.datetime.fromisoformat(step.params["until"])
