"""Boundaries of a call that its server answered with a task (SEP-2663). Fenced, like those of `call_journal`.

The permission was used up when the call was sent; looking at its task and answering it needs none. While the id is
stored the outcome cannot become unknown by a death of ours: a look that was lost is made again.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from runs import clock
from runs.gate import Gate
from runs.lease import Lease
from runs.mcp_client import Completed, Failed, TaskStarted, Working
from runs.models import Round, Step
from runs.round_states import RoundKind, RoundStatus
from runs.run_states import CallPhase
from runs.worker import asking, call_journal, gating, leg_rows, task_facts
from runs.worker.call_journal import Place
from runs.worker.task_facts import KEY, TaskFacts

_ON_THEIR_WAY = (RoundStatus.RESPONSE_VALIDATED.value, RoundStatus.DELIVERY_STARTED.value)


def started(held: Lease, step_id: int, task: TaskStarted, server: str) -> None:
    """The call was answered with a task: its id is what any worker goes on with. `server` is the identity of who
    gave it."""
    here, now = call_journal.at(held, step_id), clock.now()
    call_journal.resolve_rounds(here.step)
    here.call.phase, here.call.raw_result = CallPhase.SENT.value, None
    here.call.wire = {**here.call.wire, "request_state": None, "responses": None}
    facts = TaskFacts(id=task.task_id, server=server, begun_at=now, working_since=now)
    _keep(here, _seen(facts, task, now), message=task.message)
    call_journal.note(here, "tool_call.task", {"kept_seconds": task.ttl})


def working(held: Lease, step_id: int, task: Working) -> None:
    """It goes on. Answers that were on their way have arrived; one that it did not ask for again waits."""
    here, now = call_journal.at(held, step_id), clock.now()
    call_journal.resolve_rounds(here.step)
    here.call.phase = CallPhase.SENT.value
    facts = replace(_facts(here).at_work(now), unheard=0)
    _keep(here, _seen(facts, task, now), message=task.message)


def asked(held: Lease, step_id: int, requests: Mapping[str, Mapping[str, Any]]) -> None:
    """The task needs input: a parked round, as if the call itself had asked; nothing stays open."""
    here, now = call_journal.at(held, step_id), clock.now()
    call_journal.resolve_rounds(here.step)
    here.call.phase, here.call.leg = CallPhase.INPUT_REQUIRED.value, here.call.leg + 1
    _keep(here, _facts(here).paused(now), message="")
    call_journal.ask_person(here, requests, None)


def may_answer(held: Lease, step_id: int, gate_: Gate) -> str | None:
    """Right before answers leave: None, or why they no longer may (a block or a rule made since)."""
    here = call_journal.at(held, step_id)
    verdict = gate_.recheck(here.run, here.turn, here.call)
    if verdict.effect != "deny" or verdict.code == gating.PLAN_FIRST:
        return None
    return verdict.reason


def updating(held: Lease, step_id: int, keys: Collection[str]) -> None:
    """Answers are about to leave, intent before effect; after a crash the server is asked whether it has them."""
    here = call_journal.at(held, step_id)
    for round_ in answered_rounds(here.step):
        if keys & round_.requests.keys():
            asking.start_delivery(round_)
    here.call.phase = CallPhase.SENT.value
    here.call.save(update_fields=["phase"])
    call_journal.note(here, "tool_call.answers_sent", {"answers": len(keys)})


def updated(held: Lease, step_id: int, keys: Collection[str]) -> None:
    """The server has acknowledged them: they never leave again, and its own time counts from here."""
    here, now = call_journal.at(held, step_id), clock.now()
    call_journal.resolve_rounds(here.step)
    facts = _facts(here)
    known = tuple(dict.fromkeys([*facts.answered, *sorted(keys)]))
    _keep(here, replace(facts, answered=known).at_work(now))


def unheard(held: Lease, step_id: int, message: str) -> None:
    """A look came to nothing: look again, later and later. What the person reads says why."""
    here, now = call_journal.at(held, step_id), clock.now()
    _keep(here, _facts(here).at_work(now).unheard_again(now), message=message)


def completed(held: Lease, step_id: int, outcome: Completed) -> None:
    """The task's result is the call's result."""
    here = call_journal.at(held, step_id)
    _keep(here, replace(_facts(here), over=True))
    call_journal.complete(held, step_id, outcome.raw, is_error=outcome.is_error, problem=outcome.problem)


def ended(held: Lease, step_id: int, failed: Failed) -> None:
    """The task will not go on. What nobody can know is put to a person, or repeated if that is harmless."""
    here = call_journal.at(held, step_id)
    _keep(here, replace(_facts(here), over=True))
    if failed.outcome_unknown:
        call_journal.supersede_answers(here)
    call_journal.failed(held, step_id, failed.message, unknown=failed.outcome_unknown)


def cancelled(held: Lease, step_id: int, *, heard: bool) -> None:
    """Whether the server took note that nobody waits for its task any more; if not, it is told again later."""
    here, now = call_journal.at(held, step_id), clock.now()
    facts = replace(_facts(here), over=True) if heard else _facts(here).told_in_vain(now)
    _keep(here, facts)
    if facts.over:
        said = "The server was told to stop." if heard else "The server could not be told to stop."
        call_journal.note(here, "tool_call.task_cancelled", {"heard": heard, "reason": said})


def answers(step_id: int) -> dict[str, Mapping[str, Any]]:
    """{key: stored response} of what people have answered and no server has acknowledged."""
    found: dict[str, Mapping[str, Any]] = {}
    for round_ in answered_rounds(Step.objects.get(pk=step_id)):
        found |= round_.responses or {}
    return found


def answered_rounds(step: Step) -> list[Round]:
    """Elicitations of this step whose answers have not arrived yet, oldest first."""
    rounds = Round.objects.filter(step=step, kind=RoundKind.ELICITATION.value, status__in=_ON_THEIR_WAY)
    return list(rounds.select_related("run", "turn", "step").order_by("round_index"))


def _facts(here: Place) -> TaskFacts:
    facts = task_facts.of(here.call)
    if facts is None:
        raise RuntimeError(f"{here.call.full_name} (step {here.step.seq}) has no task")
    return facts


def _seen(facts: TaskFacts, task: TaskStarted | Working, now: dt.datetime) -> TaskFacts:
    """With what the server said of when to look next, and for how long it keeps the task; both may change."""
    return replace(facts, look_at=now + dt.timedelta(seconds=task.poll_after), ttl=task.ttl)


def _keep(here: Place, facts: TaskFacts, *, message: str | None = None) -> None:
    """Write the facts, and the server's word on how far it is unless that is None."""
    call = here.call
    call.wire = {**call.wire, KEY: facts.stored()}
    if message is not None:
        call.wire["progress"] = {"value": None, "total": None, "message": message or None}
    call.save(update_fields=["wire", "phase", "leg", "raw_result"])
    leg_rows.show_progress(here)
