"""What a program reads about an execution. Frozen values; nothing in them changes when the execution does."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from runs.handles.specs import PlannedElicitation
from runs.managed_input.values import FormElicitationRequest, UrlElicitationRequest
from runs.round_states import RoundKind
from runs.run_states import Outcome as ExecutionOutcome
from runs.run_states import TurnStatus as ExecutionStatus

__all__ = [
    "CallRecord",
    "ExecutionOutcome",
    "ExecutionResult",
    "ExecutionState",
    "ExecutionStatus",
    "PendingRound",
]

Request: TypeAlias = FormElicitationRequest | UrlElicitationRequest


@dataclass(frozen=True, kw_only=True)
class ExecutionState:
    """An execution at one moment. `outcome`, `error` and `finished_at` come with the lifecycle `finished`."""

    execution_id: str
    run_id: int
    lifecycle: ExecutionStatus
    outcome: ExecutionOutcome | None
    error: str | None
    error_code: str | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """One operation of an execution: `target` is "server:name", `status` done, failed, denied or cancelled.

    `arguments` are what was sent, or what was asked for if nothing was.
    """

    target: str
    operation: str
    arguments: Mapping[str, Any]
    status: str
    result: Any
    error: str | None


@dataclass(frozen=True, kw_only=True)
class ExecutionResult:
    """How an execution ended; it never changes. A failed one is a result too: look at `outcome`.

    `unused_elicitations` are the predefined answers that nothing asked for.
    """

    execution_id: str
    run_id: int
    outcome: ExecutionOutcome
    output: str | None
    error: str | None
    error_code: str | None
    finished_at: dt.datetime
    calls: tuple[CallRecord, ...] = ()
    unused_elicitations: tuple[PlannedElicitation, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PendingRound:
    """A pause of any kind: an elicitation, an approval, a question, a plan, or a call of unknown result.

    Every kind is answered alike, with one response for each of `requests`. `server` and `operation_name` are empty
    where no operation stands behind it.
    """

    round_id: str
    execution_id: str
    kind: RoundKind
    server: str
    operation_name: str
    requests: Mapping[str, Request]
    context: Mapping[str, Any] = field(repr=False)
    created_at: dt.datetime
    deadline: dt.datetime | None
