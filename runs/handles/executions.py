"""Reading, answering, ending and deleting one execution. Each function is one boundary in a thread of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from runs import control, rounds
from runs.errors import (
    ManagedInputStateError,
    ManagedInputValidationError,
    ModelValidationError,
    NotFound,
    StateConflict,
)
from runs.handles.specs import PlannedElicitation
from runs.handles.stores import PROGRAMS
from runs.handles.values import (
    CallRecord,
    ExecutionOutcome,
    ExecutionResult,
    ExecutionState,
    ExecutionStatus,
    PendingRound,
    Request,
)
from runs.managed_input import PendingElicitationRound
from runs.managed_input.rows import intact, of_execution, record_of, turn_key
from runs.managed_input.values import ElicitationResponse
from runs.models import Round, ToolCall, Turn
from runs.requests import APPROVAL_KEY
from runs.round_rows import Decider
from runs.round_states import RoundKind
from runs.run_states import HumanInput

VIA = "python"
"""How history calls what a program decided."""

_REQUESTS: TypeAdapter[dict[str, Request]] = TypeAdapter(
    dict[str, Annotated[Request, Field(discriminator="mode")]]
)


def find(execution_id: str, account: str | None) -> Turn:
    """The turn with its run and agent. Raises NotFound if the account has no such execution."""
    key = turn_key(execution_id) if isinstance(execution_id, str) else None
    turn = (
        Turn.objects.select_related("run__agent")
        .filter(pk=key, run__account__slug=account or PROGRAMS)
        .first()
        if key
        else None
    )
    if turn is None:
        raise NotFound("There is no such execution in this store. Was it deleted?")
    return turn


def state(turn_id: str) -> ExecutionState:
    turn = _turn(turn_id)
    return ExecutionState(
        execution_id=str(turn.pk),
        run_id=turn.run_id,
        lifecycle=ExecutionStatus(turn.status),
        outcome=ExecutionOutcome(turn.outcome) if turn.outcome else None,
        error=turn.error,
        error_code=turn.error_code,
        created_at=turn.created_at,
        started_at=turn.started_at,
        finished_at=turn.finished_at,
    )


def result(turn_id: str) -> ExecutionResult | None:
    """How it ended; None while it has not."""
    turn = _turn(turn_id)
    if turn.outcome is None or turn.finished_at is None:
        return None
    calls = ToolCall.objects.filter(step__turn=turn).select_related("step").order_by("step__seq")
    return ExecutionResult(
        execution_id=str(turn.pk),
        run_id=turn.run_id,
        outcome=ExecutionOutcome(turn.outcome),
        output=turn.output,
        error=turn.error,
        error_code=turn.error_code,
        finished_at=turn.finished_at,
        calls=tuple(_call(call) for call in calls),
        unused_elicitations=tuple(_planned(entry) for entry in turn.planned if entry["used"] is None),
    )


def pending_elicitation(turn_id: str) -> PendingElicitationRound | None:
    """The one pending elicitation. Raises ManagedInputStateError if there are several (C7)."""
    found = list(of_execution(turn_id).pending().order_by("created_at")[:2])
    if len(found) > 1:
        raise ManagedInputStateError(
            "The execution has several pending elicitations. Read them with pending_rounds() and answer one by one.",
            details={"round_ids": [round_.pk for round_ in found]},
        )
    return record_of(found[0]).pending if found else None


def pending_rounds(turn_id: str) -> tuple[PendingRound, ...]:
    """Every pause of the execution, the oldest first."""
    return tuple(
        map(_pending, Round.objects.filter(turn=turn_key(turn_id)).pending().order_by("created_at", "pk"))
    )


def respond(
    turn_id: str, round_id: str, payload: Mapping[str, Mapping[str, Any]], idempotency_key: str
) -> Round | StateConflict:
    """Answer one of the execution's rounds. A refusal because of the deadline is returned: its expiry must be kept.

    Raises ManagedInputValidationError for a round of nobody or of another execution (C24), and whatever
    `rounds.answer` raises.
    """
    round_ = Round.objects.filter(turn=turn_key(turn_id), pk=round_id).first()
    if round_ is None:
        raise ManagedInputValidationError(
            "The execution has no such round. Use an id from its own pending round."
        )
    if round_.kind == RoundKind.APPROVAL and "arguments" in (
        payload.get(APPROVAL_KEY, {}).get("content") or {}
    ):
        raise ManagedInputValidationError(
            "Arguments are edited on the page; from here allow the call or deny it."
        )
    decider = Decider(user=None, via=VIA)
    return rounds.try_answer(round_id, payload, decider=decider, idempotency_key=idempotency_key)


def accepted(settled: Round | StateConflict) -> None:
    """Raise what `respond` settled, if it was a refusal, in the words of managed input (C25)."""
    if isinstance(settled, StateConflict):
        raise late(settled)


def late(conflict: StateConflict) -> ManagedInputStateError:
    """An answer that came after the end."""
    return ManagedInputStateError(conflict.message, details=conflict.details)


def cancel(turn_id: str) -> None:
    """End the execution, and with it its run (C41). One that has ended keeps its result."""
    turn = _turn(turn_id)
    if turn.outcome is None:
        control.cancel(turn.run_id, decider=Decider(user=None, via=VIA))


def delete(turn_id: str) -> None:
    """Remove a finished run with everything about it, its rounds included (C38)."""
    control.delete(_turn(turn_id).run_id)


def human_input_of(turn: Turn) -> HumanInput:
    """The submission's word on people, as it is stored with the run (C5)."""
    return HumanInput(turn.run.human_input)


def check_managed(human_input: HumanInput) -> None:
    """Raise ModelValidationError where nobody may be asked, so that there is nothing to answer (C6)."""
    if human_input is not HumanInput.MANAGED:
        raise ModelValidationError(
            'The execution was submitted with human_input="fail"; it asks nobody. Submit with "managed" to answer.'
        )


def _turn(turn_id: str) -> Turn:
    try:
        return Turn.objects.get(pk=turn_id)
    except Turn.DoesNotExist as error:
        raise NotFound("The execution was deleted.") from error


def _call(call: ToolCall) -> CallRecord:
    ended: Mapping[str, Any] = call.step.result or {}
    return CallRecord(
        target=call.full_name,
        operation=call.operation,
        arguments=dict(call.executed if call.executed is not None else call.arguments),
        status=str(ended.get("status", "")),
        result=ended.get("result"),
        error=ended.get("error"),
    )


def _planned(entry: Mapping[str, Any]) -> PlannedElicitation:
    return PlannedElicitation(response=ElicitationResponse(**entry["response"]), **entry["match"])


def _pending(round_: Round) -> PendingRound:
    with intact(round_.pk):
        return PendingRound(
            round_id=round_.pk,
            execution_id=str(round_.turn_id),
            kind=RoundKind(round_.kind),
            server=round_.server_name,
            operation_name=round_.operation_name,
            requests=_REQUESTS.validate_python(round_.requests),
            context=round_.context,
            created_at=round_.asked_at or round_.created_at,
            deadline=round_.deadline,
        )
