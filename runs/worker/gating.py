"""The gate's word on one operation, and a person's: a permission on the call, or its end. Fenced boundaries, like
those of `call_journal`."""

from __future__ import annotations

from runs import requests
from runs.canonical import digest
from runs.gate import Gate
from runs.lease import Lease
from runs.models import Round, Tool, ToolCall
from runs.run_states import CallPhase
from runs.worker import asking
from runs.worker.call_journal import Place, at, note
from runs.worker.journal import close_step

DENIED_BY_PERSON = "A person denied this call. Go on without it, or propose something else."


def gate(held: Lease, step_id: int, gate_: Gate) -> None:
    """Ask the gate. Allow leaves a permission on the call, Ask a pending round, Deny the step's result."""
    here = at(held, step_id)
    verdict = gate_.decide(here.run, here.turn, here.call)
    here.call.verdict = dict(verdict.as_json())
    here.call.definition_digest = live_digest(here.call)
    if verdict.effect == "allow":
        here.call.allowed = True
        note(
            here,
            "tool_call.allowed",
            {"reason": verdict.reason, "code": verdict.code, "rule_id": verdict.rule_id},
        )
    here.call.save(update_fields=["verdict", "allowed", "definition_digest"])
    if verdict.effect == "deny":
        deny(here, verdict.reason)
        if verdict.code == asking.HUMAN_INPUT_REQUIRED:
            asking.may_ask(here.run, here.turn)  # nobody may be asked: that ends the turn, not only the call
    elif verdict.effect == "ask" and asking.may_ask(here.run, here.turn):
        asking.approval(here.run, here.turn, here.step, here.call)


def live_digest(call: ToolCall) -> str:
    """Digest of the tool's definition as last listed; empty if it has none (any more)."""
    tool = Tool.objects.filter(server=call.server_id, name=call.name, present=True).first()
    return tool.digest if tool is not None and call.operation == "tool" else ""


def ask_again(held: Lease, step_id: int) -> None:
    """The tool changed after it was allowed: take the permission back, so that the gate decides anew."""
    here = at(held, step_id)
    here.call.allowed = False
    here.call.save(update_fields=["allowed"])
    note(here, "tool_call.changed", {"allowed_digest": here.call.definition_digest})


def apply_approval(held: Lease, step_id: int, round_id: str) -> None:
    """A person decided: keep the permission (with edited arguments, if any) or end the call as denied (R19)."""
    here = at(held, step_id)
    round_ = Round.objects.select_related("run", "turn", "step").get(pk=round_id)
    response = (round_.responses or {})[requests.APPROVAL_KEY]
    content = response.get("content") or {}
    asking.deliver(round_)
    if content.get("decision") != "allow":
        deny(here, str(content.get("feedback") or round_.note or DENIED_BY_PERSON))
        return
    if content.get("arguments") is not None and digest(content["arguments"]) != here.call.asked_digest:
        here.call.edited = content["arguments"]
    here.call.allowed = True
    here.call.save(update_fields=["edited", "allowed"])


def deny(here: Place, reason: str) -> None:
    """Zero executions; the reason is what the agent gets as the result."""
    here.call.phase, here.call.allowed = CallPhase.DENIED.value, False
    here.call.save(update_fields=["phase", "allowed"])
    close_step(here.step, {"status": "denied", "result": None, "error": reason})
    note(here, "tool_call.denied", {"reason": reason})
