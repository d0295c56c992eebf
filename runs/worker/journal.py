"""Lines of the journal: what happened and what comes next, stored inside the worker's fenced transaction."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from runs import clock, control, events, lease, recommended, row_writes, turns
from runs.canonical import digest
from runs.errors import M3Error, ModelValidationError
from runs.lease import Lease
from runs.models import LONG_AGO, Agent, Round, Run, Server, Step, ToolCall, Turn
from runs.run_states import Outcome, TurnStatus
from runs.steps import (
    Ask,
    Call,
    Fail,
    Finish,
    Prompt,
    Proposal,
    ProposePlan,
    Read,
    RunAgent,
    Say,
    Sleep,
    StepKind,
)
from runs.turns import Known
from runs.worker import asking
from runs.worker.view import run_of

MAX_FAMILY = 200
"""How many runs one run may bring about, at any depth, before it must be a mistake."""

MAX_DEPTH = 5
"""How deep runs may start runs; an agent that calls itself must come to an end."""


@dataclass(frozen=True)
class _Place:
    """Where a line of the journal goes: nobody but the run's driver writes any, so its number is known."""

    run: Run
    turn: Turn
    seq: int
    known: Known | None
    """What there is of the run until here; None once a pause was opened."""


def apply(run: Run, turn: Turn, proposals: Sequence[Proposal], known: Known) -> list[Step]:
    """Journal what the harness proposes: steps that are done at once, steps to drive, pauses, or the end.

    `known` is what there is of the run; gives the new steps. Runs inside a fenced transaction, like everything here
    that takes a run.
    """
    first = known.steps[-1].seq + 1 if known.steps else 1
    if turn.status == TurnStatus.QUEUED:
        turns.set_status(run, turn, TurnStatus.RUNNING_TURN)
    new: list[Step] = []
    for proposal in proposals:
        if turn.status == TurnStatus.FINISHED:
            break
        waits = turn.status == TurnStatus.WAITING_FOR_INPUT
        so_far = None if waits else replace(known, steps=[*known.steps, *new])
        step = _apply(_Place(run, turn, first + len(new), so_far), proposal)
        if step is not None:
            new.append(step)
    return new


def _apply(place: _Place, proposal: Proposal) -> Step | None:
    run, turn = place.run, place.turn
    step: Step | None = None
    match proposal:
        case Finish(text=text):
            step = _step(place, proposal, StepKind.FINISH, {"text": text}, {"status": "done"})
            turns.finish(run, turn, Outcome.COMPLETED, output=text, known=place.known)
        case Fail(text=text):
            turns.finish(run, turn, Outcome.FAILED, error=text, error_code="agent_failed", known=place.known)
        case Say(text=text):
            step = _step(place, proposal, StepKind.SAY, {"text": text}, {"status": "done"})
            events.record(
                run, "agent.say", {"step": step.seq, "text": text}, turn=turn, actor_name=run.agent.name
            )
        case Sleep(seconds=seconds):
            until = clock.now() + dt.timedelta(seconds=seconds)
            step = _step(place, proposal, StepKind.SLEEP, {"seconds": seconds, "until": until.isoformat()})
        case Ask():
            step = _ask(place, proposal)
        case ProposePlan():
            step = _plan(place, proposal)
        case RunAgent():
            step = _start_child(place, proposal)
        case Call() | Prompt() | Read():
            step = _prepare_call(place, proposal)
        case _:
            raise TypeError(f"No step is made of {type(proposal).__name__}.")
    return step


def _step(
    place: _Place,
    proposal: Proposal,
    kind: StepKind,
    params: Mapping[str, Any],
    result: Mapping[str, Any] | None = None,
) -> Step:
    step = Step(
        run=place.run,
        turn=place.turn,
        seq=place.seq,
        kind=kind.value,
        path=proposal.path,
        bind=proposal.bind,
        required=proposal.required,
        params=dict(params),
        result=dict(result) if result else None,
        finished_at=timezone.now() if result else None,
    )
    row_writes.insert(step, key_needed=result is None)
    return step


def _ask(place: _Place, proposal: Ask) -> Step:
    run, turn = place.run, place.turn
    asked = [dict(question) for question in proposal.questions]
    step = _step(place, proposal, StepKind.ASK, {"questions": asked, "blocking": proposal.blocking})
    if not proposal.blocking:
        _answer_at_once(run, turn, step, asked)
    elif asking.may_ask(run, turn):
        asking.question(run, turn, step, asked)
    return step


def _answer_at_once(run: Run, turn: Turn, step: Step, asked: Sequence[Mapping[str, Any]]) -> None:
    """A non-blocking question never waits: the recommended option, else the first, is taken (m8tes-http 4.5)."""
    chosen = {question["question"]: recommended.at_once(question) for question in asked}
    close_step(step, {"status": "done", "answers": chosen, "auto_resolved": True})
    events.record(run, "question.auto_resolved", {"step": step.seq, "answers": chosen}, turn=turn)


def _plan(place: _Place, proposal: ProposePlan) -> Step:
    run, turn = place.run, place.turn
    params = {"text": proposal.text, "revision": proposal.revision, "feedback": proposal.feedback}
    step = _step(place, proposal, StepKind.PLAN, params)
    if asking.may_ask(run, turn):
        asking.plan(run, turn, step, proposal)
    return step


def _start_child(place: _Place, proposal: RunAgent) -> Step:
    run, turn = place.run, place.turn
    step = _step(place, proposal, StepKind.RUN, {"agent": proposal.agent, "message": proposal.message})
    try:
        child = _child_run(run, step, proposal)
    except M3Error as error:
        close_step(step, {"status": "failed", "result": None, "error": error.message})
        events.record(run, "child.refused", {"step": step.seq, "error": error.message}, turn=turn)
        return step
    step.params = {**step.params, "run_id": child.pk}
    step.save(update_fields=["params"])
    events.record(
        run, "child.started", {"step": step.seq, "run_id": child.pk, "agent": proposal.agent}, turn=turn
    )
    return step


def _child_run(run: Run, step: Step, proposal: RunAgent) -> Run:
    agent = Agent.objects.filter(account=run.account_id, name=proposal.agent).first()
    if agent is None:
        raise ModelValidationError(
            f"There is no agent named {proposal.agent!r}. Create it, or correct the playbook."
        )
    if _family(run) >= MAX_FAMILY:
        raise ModelValidationError(
            f"A run and the runs under it are {MAX_FAMILY} at most; this would be one more."
        )
    if _depth(run) >= MAX_DEPTH:
        raise ModelValidationError(f"Runs may start runs {MAX_DEPTH} levels deep; this would be one more.")
    return control.create_run(agent, control.Submission(message=proposal.message), parent_step=step)


def _depth(run: Run) -> int:
    depth, parent = 0, run.parent_id
    while parent is not None and depth < MAX_DEPTH:
        depth, parent = depth + 1, Run.objects.values_list("parent_id", flat=True).get(pk=parent)
    return depth


def _family(run: Run) -> int:
    """How many runs there are under the same first run, itself included."""
    root = run
    while root.parent is not None:
        root = root.parent
    # Two of the family may each start a run at this moment; locked, the second one sees the first one's.
    Run.objects.select_for_update(no_key=True).filter(pk=root.pk).values_list("pk").get()
    size, level = 1, [root.pk]
    while level and size < MAX_FAMILY:
        level = list(Run.objects.filter(parent__in=level).values_list("pk", flat=True))
        size += len(level)
    return size


def _prepare_call(place: _Place, proposal: Call | Prompt | Read) -> Step:
    run = place.run
    kind, operation = {
        Call: (StepKind.CALL, "tool"),
        Prompt: (StepKind.PROMPT, "prompt"),
        Read: (StepKind.READ, "resource"),
    }[type(proposal)]
    arguments = {} if isinstance(proposal, Read) else dict(proposal.args)
    server_name, _, name = proposal.target.partition(":")
    step = _step(place, proposal, kind, {"target": proposal.target, "args": arguments})
    ToolCall.objects.create(
        step=step,
        server=Server.objects.filter(account=run.account_id, name=server_name, agents=run.agent_id).first(),
        server_name=server_name,
        operation=operation,
        name=name,
        asked=arguments,
        asked_digest=digest(arguments),
    )
    return step


def settle(run: Run, turn: Turn, round_: Round, step: Step) -> None:
    """Close the step of an answered question or plan; delivering an answer to ourselves needs no wire in between."""
    asking.deliver(round_)
    result = asking.answer_value(round_)
    close_step(step, result)
    if round_.kind == "plan" and result["status"] == "approved":
        run.plan_approved = True
        row_writes.save(run, ("plan_approved",))
    events.record(run, f"{round_.kind}.settled", {"step": step.seq, **result}, turn=turn)


def park(held: Lease, seen: int, next_at: dt.datetime | None) -> bool:
    """Nothing to do until somebody decides or a sleep ends: give the run back. True if a newer wake came."""
    return lease.release(held, seen=seen, next_at=next_at)


def close_step(step: Step, result: Mapping[str, Any]) -> None:
    """A step's result is written once."""
    step.result, step.finished_at = dict(result), timezone.now()
    row_writes.save(step, ("result", "finished_at"))


def fail_current_turn(held: Lease, defect: str) -> None:
    """A defect of ours must not leave a run hanging: end the turn and say so. Gives the run back at once."""
    lease.fence(held, lease_until=LONG_AGO)
    run = run_of(held)
    turn = turns.current(run)
    if turn is not None:
        error = f"Something went wrong inside M3 Web ({defect}); the log has the details. Report it, then start again."
        turns.finish(run, turn, Outcome.FAILED, error=error, error_code="internal_error")
