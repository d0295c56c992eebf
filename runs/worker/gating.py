"""The gate's word on one operation, and a person's: a permission on the call, or its end. Fenced boundaries, like
those of `call_journal`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs import requests, round_rows, rounds
from runs.canonical import digest
from runs.gate import Gate, Verdict
from runs.lease import Lease
from runs.models import Round, Tool, ToolCall
from runs.round_rows import Decider
from runs.round_states import RoundKind, RoundOutcome
from runs.run_states import CallPhase
from runs.worker import asking
from runs.worker.call_journal import Place, at, note, place, supersede_answers
from runs.worker.journal import close_step

PLAN_FIRST = "plan_first"
OVERTAKEN = "overtaken"
"""Failure code of an approval that a change overtook while it was being stored."""

PERSON = "person"
"""The code of a denial that is the word of a person, where the gate's own denials have the code of their rule."""

DENIED_BY_PERSON = "A person denied this call. Go on without it, or propose something else."


def gate(held: Lease, step_id: int, gate_: Gate) -> bool:
    """Ask the gate. Allow leaves a permission on the call, Ask a pending round, Deny the step's result.

    Gives whether a round waits now.
    """
    here = at(held, step_id)
    verdict = gate_.decide(here.run, here.turn, here.call)
    here.call.verdict = dict(verdict.as_json())
    here.call.definition_digest = _live_digest(here.call)
    if verdict.effect == "allow":
        here.call.allowed = True
        note(here, "tool_call.allowed", _told(here, verdict))
    here.call.save(update_fields=["verdict", "allowed", "definition_digest"])
    if verdict.effect == "deny":
        _refuse(here, verdict)
    elif verdict.effect == "ask" and asking.may_ask(here.run, here.turn):
        note(here, "tool_call.asked", _told(here, verdict))
        asking.approval(here.run, here.turn, here.step, here.call)
        return True
    return False


def still_asks(step_id: int, gate_: Gate) -> bool:
    """Whether a call that the gate has just left waiting would be left waiting now, for the same.

    Where transactions run beside each other, a change that was made while the pause was being stored was not seen
    here, and did not see the pause. Whoever made it looks again after its commit (`round_rows.now_and_again`), this
    does after ours.
    """
    return _is_same(place(step_id), gate_)


def ask_anew(held: Lease, step_id: int, gate_: Gate) -> None:
    """Take back a pause that is no longer asked for; the gate decides anew."""
    here = at(held, step_id)
    if _is_same(here, gate_):
        return
    for round_ in here.step.rounds.pending().filter(kind=RoundKind.APPROVAL.value):
        round_rows.fail(
            round_,
            RoundOutcome.SUPERSEDED,
            code=OVERTAKEN,
            message=f"What counts for {here.call.full_name} has just changed, so the call is decided anew.",
            decider=Decider(user=None, via="worker"),
        )
    rounds.settle_turn(here.run, here.turn)


def _is_same(here: Place, gate_: Gate) -> bool:
    """Whether a waiting call would wait now as it does; a change of mode concerns the next call (m8tes-http 4.4)."""
    now = gate_.recheck(here.run, here.turn, here.call)
    if now.code == PLAN_FIRST:
        return True
    return now.effect == "ask" and now.subject == here.call.verdict.get("subject")


def confirm(held: Lease, step_id: int, gate_: Gate) -> bool:
    """Right before a leg is sent: does the permission still hold? If not, the call is denied or asked about anew.

    A person may have allowed it hours ago. Since then an admin may have blocked the tool, a rule may have been made
    or revoked, the server may be another program or describe its tool otherwise. What a person allowed is what the
    card showed; a change of mode concerns the next call, not this one (m8tes-http 4.4).
    """
    here = at(held, step_id)
    before, now = here.call.verdict, gate_.recheck(here.run, here.turn, here.call)
    if now.effect == "deny" and now.code != PLAN_FIRST:
        supersede_answers(here)
        _refuse(here, now)
        return False
    rule_is_gone = not here.call.leg and before.get("effect") == "allow" and now.effect == "ask"
    if rule_is_gone or now.subject != before.get("subject"):
        _ask_again(here, now)
        return False
    return True


def _told(here: Place, verdict: Verdict) -> dict[str, Any]:
    """A decision of the gate for the history: why, by which rule, in which mode, and on exactly what."""
    return {
        "reason": verdict.reason,
        "code": verdict.code,
        "rule_id": verdict.rule_id,
        "risk": verdict.risk,
        "mode": here.run.mode,
        "decided_digest": digest(here.call.arguments),
        "definition_digest": _live_digest(here.call),
    }


def _refuse(here: Place, verdict: Verdict) -> None:
    deny(here, verdict.reason, _told(here, verdict))
    if verdict.code == asking.HUMAN_INPUT_REQUIRED:
        asking.may_ask(here.run, here.turn)  # nobody may be asked: that ends the turn, not only the call


def _ask_again(here: Place, now: Verdict) -> None:
    """Take the permission back; the gate decides anew, from the first leg on."""
    supersede_answers(here)
    call = here.call
    call.allowed, call.phase, call.leg = False, CallPhase.PREPARED.value, 0
    call.wire = {**call.wire, "request_state": None, "responses": None, "kept": {}}
    call.save(update_fields=["allowed", "phase", "leg", "wire"])
    note(here, "tool_call.changed", _told(here, now))


def apply_approval(held: Lease, step_id: int, round_id: str) -> None:
    """A person decided: keep the permission (with edited arguments, if any) or end the call as denied (R19)."""
    here = at(held, step_id)
    round_ = Round.objects.select_related("run", "turn", "step").get(pk=round_id)
    response = (round_.responses or {})[requests.APPROVAL_KEY]
    content = response.get("content") or {}
    asking.deliver(round_)
    if content.get("decision") != "allow":
        why = str(content.get("feedback") or round_.note or DENIED_BY_PERSON)
        facts = {"code": PERSON, "rule_id": None, "request_id": round_.pk}
        deny(here, why, {**facts, "decided_digest": digest(here.call.arguments)})
        return
    if content.get("arguments") is not None and digest(content["arguments"]) != here.call.asked_digest:
        here.call.edited = content["arguments"]
    here.call.allowed = True
    here.call.save(update_fields=["edited", "allowed"])


def _live_digest(call: ToolCall) -> str:
    """Digest of the tool's definition as last listed, for the record; empty if it has none."""
    tool = Tool.objects.filter(server=call.server_id, name=call.name, present=True).first()
    return tool.digest if tool is not None and call.operation == "tool" else ""


def deny(here: Place, reason: str, facts: Mapping[str, Any]) -> None:
    """Zero executions; the reason is what the agent gets as the result, `facts` what else the history is told."""
    here.call.phase, here.call.allowed = CallPhase.DENIED.value, False
    here.call.save(update_fields=["phase", "allowed"])
    close_step(here.step, {"status": "denied", "result": None, "error": reason})
    note(here, "tool_call.denied", {**facts, "reason": reason})
