"""Boundaries of one operation on a server: gate, sent, raw result, outcome. Each is one fenced transaction.

Order matters and is the whole safety of the product: intent before the side effect, the raw result right after,
a permission consumed in the transaction that marks the attempt as sent (design section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from runs import events, lease, live_sessions, requests, round_rows, turns
from runs.canonical import digest
from runs.errors import ElicitationRoundLimitError
from runs.lease import Lease
from runs.models import Round, Run, Step, ToolCall, Turn
from runs.round_states import RoundKind, RoundOutcome, RoundStatus
from runs.run_states import CallPhase, Outcome
from runs.worker import asking, results
from runs.worker.journal import close_step

MAX_RESTARTS = 3
"""How often a call starts over because its server refuses its own state, or asks to (-32042)."""

MAX_ATTEMPTS = 2
"""How often a call that may be repeated is tried when its outcome stays unknown."""

MAX_EMPTY_LEGS = 20
"""How often a server may ask to be called again without asking anything (it sheds load, or it loops)."""

URLS_REQUIRED = "urls"


@dataclass
class Place:
    """Where a boundary acts: the rows, read inside its transaction."""

    run: Run
    turn: Turn
    step: Step
    call: ToolCall


def at(held: Lease, step_id: int, **fields: Any) -> Place:
    """Fence, then read the step with its call, turn and run."""
    lease.fence(held, **fields)
    return place(step_id)


def place(step_id: int) -> Place:
    """The step with its call, turn and run, as they are now."""
    step = Step.objects.select_related(
        "run__agent", "run__account", "run__end_user", "turn", "call__server"
    ).get(pk=step_id)
    return Place(step.run, step.turn, step, step.call)


def rows(step_id: int) -> tuple[Step, list[Round]]:
    """A step with its call, and its rounds that are not over: what the next move is read off (`moves`)."""
    step = Step.objects.select_related("call__server", "turn", "run").get(pk=step_id)
    over = [RoundStatus.RESOLVED.value, RoundStatus.FAILED.value]
    return step, list(step.rounds.exclude(status__in=over).order_by("created_at"))


def sent(held: Lease, step_id: int, jsonrpc_id: str) -> None:
    """Write-ahead: from this commit on the call may have happened. Consumes the permission.

    A leg whose server refused before acting (wrong protocol generation, stale headers) is sent once more by the
    same worker under the same permission.

    Raises RuntimeError if there is none, which no path may reach: a call is never sent without one.
    """
    here = at(held, step_id)
    call = here.call
    refused_before = call.phase == CallPhase.SENT and call.fence == held.token
    if not call.allowed and not refused_before:
        raise RuntimeError(f"{call.full_name} (step {here.step.seq}) has no permission to be sent")
    call.allowed, call.phase, call.fence = False, CallPhase.SENT.value, held.token
    call.attempts += 1
    call.executed, call.executed_digest = call.arguments, digest(call.arguments)
    call.sent_at = timezone.now()
    call.wire = {**call.wire, "jsonrpc_ids": [*call.wire.get("jsonrpc_ids", []), jsonrpc_id][-20:]}
    call.raw_result = None
    call.save()
    if not call.wire.get("replay"):  # there, each answer leaves when its prompt is repeated
        for round_ in answered_rounds(here.step):
            asking.start_delivery(round_)
    note(
        here,
        "tool_call.sent",
        {
            "attempt": call.attempts,
            "leg": call.leg,
            "asked_digest": call.asked_digest,
            "executed_digest": call.executed_digest,
        },
    )


def received(held: Lease, step_id: int, raw: Mapping[str, Any]) -> None:
    """The raw reply, before anything looks at it."""
    lease.fence(held)
    ToolCall.objects.filter(step=step_id).update(raw_result=dict(raw))


def complete(
    held: Lease, step_id: int, raw: Mapping[str, Any], *, is_error: bool, problem: str | None = None
) -> None:
    """The server's result is the step's result, also when it says that the tool failed."""
    here = at(held, step_id)
    call = here.call
    call.phase = (CallPhase.FAILED if is_error else CallPhase.DONE).value
    call.raw_result = dict(raw)
    call.save(update_fields=["phase", "raw_result"])
    resolve_rounds(here.step)
    supersede_answers(here)
    if is_error:
        close_step(here.step, {"status": "failed", "result": None, "error": results.error_of(raw)})
    else:
        value = results.value_of(call.operation, raw)
        close_step(here.step, {"status": "done", "result": value, "error": None})
    note(here, "tool_call.result", {"status": "failed" if is_error else "done", "problem": problem})


def input_required(
    held: Lease, step_id: int, asked: Mapping[str, Mapping[str, Any]], request_state: str | None
) -> None:
    """The server returned and asks (2026-07-28): store the round and the state; nothing stays open.

    No requests at all mean "come back with this state": the call is ready for its next leg at once. Answers given
    before are reused for identical requests when the server had to be called from its first leg again.
    """
    here = at(held, step_id)
    call = here.call
    resolve_rounds(here.step)
    call.phase, call.leg = CallPhase.INPUT_REQUIRED.value, call.leg + 1
    reusable = _reusable_answers(here, asked)
    call.wire = {**call.wire, "request_state": request_state, "responses": None, "kept": {}}
    if not asked and call.leg > MAX_EMPTY_LEGS:
        _fail_call(
            here,
            f"The server asked {MAX_EMPTY_LEGS} times to be called again later. Try again when it has caught up.",
        )
        return
    if not asked or reusable is not None:
        call.wire["responses"] = reusable
        call.allowed = True
        call.save()
        note(here, "tool_call.answers_reused" if reusable else "tool_call.again", {"leg": call.leg})
        return
    call.raw_result = None
    call.save()
    ask_person(here, asked, request_state)


def urls_required(held: Lease, step_id: int, asked: Mapping[str, Mapping[str, Any]]) -> None:
    """Error -32042: once a person has dealt with the URLs, the call is made again from scratch."""
    here = at(held, step_id)
    if here.call.restarts >= MAX_RESTARTS:
        _fail_call(
            here, f"The server asked {MAX_RESTARTS} times to open a page first. Check what it waits for."
        )
        return
    here.call.phase = CallPhase.INPUT_REQUIRED.value
    here.call.wire = {**here.call.wire, "restart": URLS_REQUIRED}
    here.call.save(update_fields=["phase", "wire"])
    ask_person(here, asked, None)


def ask_person(here: Place, asked: Mapping[str, Mapping[str, Any]], request_state: str | None) -> None:
    """Open the round, or end the turn: nobody may be asked, or the server has asked too often (C42)."""
    refusal = asking.refusal(here.run, here.turn, here.call, asked)
    if refusal is not None:
        asking.end_unasked(here.run, here.turn, refusal)
        return
    try:
        asking.elicitation(here.run, here.turn, here.step, asked, request_state=request_state)
    except ElicitationRoundLimitError as error:
        turns.finish(here.run, here.turn, Outcome.FAILED, error=error.message, error_code=error.code)


def apply_answers(held: Lease, step_id: int, round_id: str) -> None:
    """A person answered a parked elicitation: ready for the next leg with exactly this round's keys."""
    here = at(held, step_id)
    call, round_ = here.call, Round.objects.select_related("run", "turn", "step").get(pk=round_id)
    responses = round_.responses or {}
    if call.wire.get("restart") == URLS_REQUIRED:
        asking.deliver(round_)
        if any(response["action"] != "accept" for response in responses.values()):
            _fail_call(here, "A person did not agree to open the page that the server needs.")
            return
        call.wire, call.restarts = {**call.wire, "restart": None}, call.restarts + 1
        call.phase = CallPhase.PREPARED.value
    elif call.wire.get("replay"):
        call.wire, call.leg = {**call.wire, "kept": _answers_so_far(here.step)}, 0
        call.phase = CallPhase.PREPARED.value
    else:
        call.wire = {**call.wire, "responses": responses}
    call.allowed = True
    call.save()


def state_refused(held: Lease, step_id: int, message: str) -> None:
    """The server does not take its own state back: once more from the first leg, bounded."""
    here = at(held, step_id)
    call = here.call
    if call.restarts >= MAX_RESTARTS:
        _fail_call(
            here, f"The server keeps refusing its own state ({message}). Restart it, then run this again."
        )
        return
    # The answers stay in their rounds; they are not delivered, and are reused if the server asks the same again.
    for round_ in Round.objects.filter(step=here.step, status=RoundStatus.DELIVERY_STARTED.value):
        asking.resolve(round_)
    call.wire = {**call.wire, "request_state": None, "responses": None, "kept": _answers_so_far(here.step)}
    call.phase, call.leg, call.restarts, call.allowed = CallPhase.PREPARED.value, 0, call.restarts + 1, True
    call.save()
    note(here, "tool_call.restarted", {"restart": call.restarts, "reason": message})


def failed(held: Lease, step_id: int, message: str, *, unknown: bool) -> None:
    """The leg ended without a result. If it may have happened all the same, a person is asked, unless repeating
    it is harmless."""
    here = at(held, step_id)
    if not unknown:
        _fail_call(here, message)
    elif live_sessions.may_repeat(here.call) and here.call.attempts < MAX_ATTEMPTS:
        make_ready(here, "tool_call.repeated", message)
    elif live_sessions.may_repeat(here.call):
        _fail_call(here, message)
    else:
        mark_unknown(here, message)


def mark_unknown(here: Place, reason: str) -> None:
    """Nothing is silently repeated (A23): the journal says unknown and a person decides."""
    here.call.phase = CallPhase.UNKNOWN.value
    here.call.save(update_fields=["phase"])
    resolve_rounds(here.step)
    note(here, "tool_call.unknown", {"reason": reason})
    unasked = asking.UNKNOWN_TO_ALL.format(server=here.call.server_name, name=here.call.name)
    if asking.may_ask(here.run, here.turn, unasked):
        asking.outcome(here.run, here.turn, here.step, here.call, reason)


def apply_outcome(held: Lease, step_id: int, round_id: str) -> None:
    """A person said what became of a call: it happened, make it again (one new permission), or stop the run."""
    here = at(held, step_id)
    round_ = Round.objects.select_related("run", "turn", "step").get(pk=round_id)
    response = (round_.responses or {})[requests.OUTCOME_KEY]
    decision = (response.get("content") or {}).get("decision", "stop")
    asking.deliver(round_)
    if decision == "run_again":
        make_ready(here, "tool_call.run_again", "A person said to run it again.")
    elif decision == "happened":
        here.call.phase = CallPhase.DONE.value
        here.call.save(update_fields=["phase"])
        close_step(here.step, {"status": "done", "result": None, "error": None})
        note(here, "tool_call.result", {"status": "done", "problem": "A person said that it happened."})
    else:
        turns.finish(
            here.run,
            here.turn,
            Outcome.FAILED,
            error="A person stopped the run at a call of unknown outcome.",
            error_code="stopped",
        )


def make_ready(here: Place, event: str, reason: str) -> None:
    """The call is made once more from its first leg; prompts that it repeats get the answers given before."""
    call = here.call
    call.phase, call.leg, call.allowed, call.raw_result = CallPhase.PREPARED.value, 0, True, None
    kept = _answers_so_far(here.step)
    call.wire = {**call.wire, "request_state": None, "responses": None, "kept": kept, "replay": True}
    call.save()
    resolve_rounds(here.step)
    note(here, event, {"reason": reason})


def _fail_call(here: Place, message: str) -> None:
    here.call.phase, here.call.allowed = CallPhase.FAILED.value, False
    here.call.save(update_fields=["phase", "allowed"])
    resolve_rounds(here.step)
    supersede_answers(here)
    close_step(here.step, {"status": "failed", "result": None, "error": message})
    note(here, "tool_call.failed", {"error": message})


def answered_rounds(step: Step) -> list[Round]:
    """Elicitations of this step whose answer has not left yet."""
    return list(
        Round.objects.filter(
            step=step,
            kind=RoundKind.ELICITATION.value,
            status=RoundStatus.RESPONSE_VALIDATED.value,
            held=False,
        ).select_related("run", "turn", "step")
    )


def resolve_rounds(step: Step) -> None:
    """The server went on, so every answer that was on its way has arrived."""
    for round_ in Round.objects.filter(step=step, status=RoundStatus.DELIVERY_STARTED.value):
        asking.resolve(round_)


def supersede_answers(here: Place) -> None:
    """Answers that have not left are not for whoever stands behind the call now, or nobody asked for them again."""
    message = "What the answer was for has changed before it could be sent."
    decider = round_rows.Decider(user=None, via="worker")
    for round_ in answered_rounds(here.step):
        round_rows.fail(round_, RoundOutcome.SUPERSEDED, code="superseded", message=message, decider=decider)


def _answers_so_far(step: Step) -> dict[str, Any]:
    """{digest of key and request: answer} of every answered elicitation of this call."""
    kept: dict[str, Any] = {}
    for round_ in Round.objects.filter(step=step, kind=RoundKind.ELICITATION.value, responses__isnull=False):
        for key, request in round_.requests.items():
            kept[digest([key, request])] = round_.responses[key] if round_.responses else None
    return kept


def _reusable_answers(here: Place, asked: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """Answers for exactly these requests from before a restart; None unless every one is identical."""
    kept = here.call.wire.get("kept") or {}
    found = {key: kept.get(digest([key, request])) for key, request in asked.items()}
    return found if found and all(found.values()) else None


def note(here: Place, type_: str, payload: Mapping[str, Any]) -> None:
    """An event about the call at hand."""
    events.record(
        here.run, type_, {"step": here.step.seq, "tool": here.call.full_name, **payload}, turn=here.turn
    )
