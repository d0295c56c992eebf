"""Opening the pauses of a run and reading their answers. All of it runs inside the worker's fenced boundary."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from runs import clock, events, local_tools, recommended, requests, round_rows, rounds, turns
from runs.canonical import digest
from runs.durations import parse_timeout
from runs.lease import Lease
from runs.local_tools import LOCAL, LocalTool
from runs.models import Round, Run, Step, Tool, ToolCall, Turn
from runs.round_states import RoundKind, RoundStatus
from runs.rounds import Opening
from runs.run_states import CallPhase, HumanInput, Outcome, PermissionMode, stricter
from runs.steps import ProposePlan
from runs.worker import planning

HUMAN_INPUT_REQUIRED = "human_input_required"
NOBODY = "The run needs a person, and it was started with human input off. Start it with human input on."


UNKNOWN_TO_ALL = (
    "{server}:{name} was called, and nobody knows whether it took effect: look there before you start the run again. "
    "Nobody could be asked, because the run was started with human input off."
)


def may_ask(run: Run, turn: Turn, reason: str = NOBODY) -> bool:
    """Whether people may be asked; if not, the turn ends here with human_input_required (design section 2), and with
    `reason` for whoever looks."""
    if run.human_input == HumanInput.MANAGED:
        return True
    end_unasked(run, turn, reason)
    return False


def end_unasked(run: Run, turn: Turn, reason: str) -> None:
    """End the turn because nobody may be asked; `reason` is the sentence for whoever looks."""
    turns.finish(run, turn, Outcome.FAILED, error=reason, error_code=HUMAN_INPUT_REQUIRED)


def refusal(run: Run, turn: Turn, call: ToolCall, asked: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why an elicitation finds no answer, in a sentence; None if people or answers given in advance have one."""
    if run.human_input == HumanInput.MANAGED:
        return None
    return planning.refusal(turn, call, asked) if turn.planned else NOBODY


def question(run: Run, turn: Turn, step: Step, asked: Sequence[Mapping[str, Any]]) -> None:
    opening = Opening(
        kind=RoundKind.QUESTION,
        operation_id=f"question:{step.seq}",
        requests=requests.questions(asked),
        context={"questions": list(asked), "mode": run.mode},
        shown_digest=digest(list(asked)),
    )
    rounds.open_round(run, turn, step, opening, deadline=deadline(run), continue_at=_goes_on(asked))


def _goes_on(asked: Sequence[Mapping[str, Any]]) -> dt.datetime | None:
    """When these questions take their recommended answers; None if people are needed (m8tes-http 4.5)."""
    if recommended.responses(asked) is None:
        return None
    return clock.now() + dt.timedelta(seconds=settings.M3.question_seconds)


def plan(run: Run, turn: Turn, step: Step, proposal: ProposePlan) -> None:
    context = {
        "text": proposal.text,
        "revision": proposal.revision,
        "feedback": proposal.feedback,
        "mode": run.mode,
    }
    opening = Opening(
        kind=RoundKind.PLAN,
        operation_id=f"plan:{step.seq}",
        requests=requests.plan(proposal.text, _may_follow(run)),
        context=context,
        shown_digest=digest(proposal.text),
    )
    rounds.open_round(run, turn, step, opening, deadline=deadline(run))


def _may_follow(run: Run) -> list[str]:
    """The modes in which a run may go on with an approved plan: others than its own, never laxer than its parent."""
    floor = PermissionMode(run.parent.mode) if run.parent else PermissionMode.AUTONOMOUS
    modes = (PermissionMode.APPROVAL, PermissionMode.AUTONOMOUS)
    return [mode.value for mode in modes if mode != run.mode and stricter(mode, floor) is mode]


def approval(run: Run, turn: Turn, step: Step, call: ToolCall) -> None:
    tool = _tool(call)
    context = {
        **_operation(run, call),
        "title": getattr(tool, "title", ""),
        "description": tool.description if tool else "",
        "arguments": call.arguments,
        "input_schema": dict(tool.input_schema) if tool else {},
        "verdict": call.verdict,
        "last_allowed": _last_executed(run, call),
    }
    opening = Opening(
        kind=RoundKind.APPROVAL,
        operation_id=f"approval:{step.seq}",
        requests=requests.approval(f"Allow {call.full_name}?"),
        context=context,
        shown_digest=digest(call.arguments),
    )
    rounds.open_round(run, turn, step, opening, deadline=deadline(run))


def elicitation(
    run: Run,
    turn: Turn,
    step: Step,
    asked: Mapping[str, Mapping[str, Any]],
    *,
    request_state: str | None = None,
    held_by: Lease | None = None,
    place: Mapping[str, str] | None = None,
) -> Round:
    """A server asks. `held_by` is the lease of the worker whose live session waits for the answer; `place` are the
    fields by which another worker finds that session again.

    Where nobody may be asked the answers given in advance are used; `refusal` must have said that they fit.
    """
    opening = Opening(
        kind=RoundKind.ELICITATION,
        operation_id=f"call:{step.seq}",
        requests=asked,
        context=_operation(run, step.call),
        shown_digest=digest(dict(asked)),
        request_state=request_state,
        held_by=held_by,
        place=place or {},
    )
    round_ = rounds.open_round(run, turn, step, opening, deadline=deadline(run))
    return round_ if run.human_input == HumanInput.MANAGED else planning.answer(turn, step.call, round_)


def outcome(run: Run, turn: Turn, step: Step, call: ToolCall, reason: str) -> None:
    """A started call has no known result: a person says what became of it; nothing is repeated silently."""
    opening = Opening(
        kind=RoundKind.OUTCOME,
        operation_id=f"outcome:{step.seq}",
        requests=requests.outcome(f"What became of {call.full_name}?"),
        context={**_operation(run, call), "arguments": call.arguments, "reason": reason},
        shown_digest=digest(call.arguments),
    )
    rounds.open_round(run, turn, step, opening, deadline=deadline(run))


def deadline(run: Run) -> dt.datetime | None:
    """Absolute end of a person's time: the agent's setting, else the account's, else for ever (A17)."""
    span = parse_timeout(run.agent.elicitation_timeout or run.account.elicitation_timeout or None)
    return clock.now() + span if span else None


def start_delivery(round_: Round) -> None:
    """The answer is about to leave for whoever asked."""
    round_rows.move(round_, RoundStatus.DELIVERY_STARTED)
    _store(round_)


def resolve(round_: Round) -> None:
    """The asker has the answer and went on with it."""
    round_rows.move(round_, RoundStatus.DELIVERED)
    round_rows.move(round_, RoundStatus.RESOLVED)
    _store(round_)


def deliver(round_: Round) -> None:
    """Hand an answer to ourselves: our own gates and questions have no wire in between."""
    round_rows.move(round_, RoundStatus.DELIVERY_STARTED)
    resolve(round_)


def _store(round_: Round) -> None:
    round_rows.save(round_)
    events.announce_round(round_)


def answer_value(round_: Round) -> dict[str, Any]:
    """What a question's or plan's step is worth to later steps."""
    responses: dict[str, Any] = round_.responses or {}
    if round_.kind == RoundKind.QUESTION:
        given = requests.answers(round_.context["questions"], responses)
        declined = not any(response["action"] == "accept" for response in responses.values())
        by_itself = {"auto_resolved": True} if round_.decided_via == recommended.VIA else {}
        return {"status": "declined" if declined else "done", "answers": given, **by_itself}
    response = responses[requests.PLAN_KEY]
    content = response.get("content") or {}
    approved = content.get("decision") == "approve"
    return {"status": "approved" if approved else "revise", "text": content.get("text")}


def _operation(run: Run, call: ToolCall) -> dict[str, Any]:
    address = call.server.address if call.server else ""
    if call.server_name == LOCAL:
        address = "this installation's own code"
    return {"tool": call.full_name, "server_address": address, "mode": run.mode}


def _tool(call: ToolCall) -> Tool | LocalTool | None:
    if call.server_name == LOCAL:
        return local_tools.find(call.name)
    if call.server_id is None or call.operation != "tool":
        return None
    return Tool.objects.filter(server=call.server_id, name=call.name).first()


def _last_executed(run: Run, call: ToolCall) -> Any:
    """Arguments of the last call of this tool that ran in the account, to mark what is different now."""
    return (
        ToolCall.objects.filter(
            step__run__account=run.account_id,
            server_name=call.server_name,
            name=call.name,
            operation=call.operation,
            phase=CallPhase.DONE.value,
        )
        .order_by("-sent_at")
        .values_list("executed", flat=True)
        .first()
    )
