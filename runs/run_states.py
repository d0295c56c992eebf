"""The states of a turn and of a call, and the words an API client sees for them.

Plain module. The M3 execution is the Turn (design section 2); its states and outcomes are M3's.
`api_status` is the only place that translates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from runs.described import DescribedEnum
from runs.errors import StateConflict


class TurnStatus(DescribedEnum):
    """Where a turn is in its life; `finished` and an outcome always come together."""

    CREATED = "created", "The turn is recorded; no worker has been asked for yet."
    QUEUED = "queued", "The turn waits for a worker."
    STARTING = "starting", "A worker prepares the agent and its servers."
    IDLE = "idle", "The agent is ready and has not begun this turn."
    RUNNING_TURN = "running_turn", "The agent is at work."
    WAITING_FOR_INPUT = "waiting_for_input", "The turn waits for a person."
    CLOSING = "closing", "The turn is being wound up."
    FINISHED = "finished", "The turn is over; its result never changes."


class Outcome(DescribedEnum):
    """How a finished turn ended."""

    COMPLETED = "completed", "The agent came to its end."
    FAILED = "failed", "The turn ended with an error."
    TIMED_OUT = "timed_out", "A deadline passed before the turn could end."
    CANCELLED = "cancelled", "Somebody cancelled the turn."
    INTERRUPTED = "interrupted", "The turn was cut off from outside, for example by a shutdown."


_END: frozenset[TurnStatus] = frozenset({TurnStatus.CLOSING, TurnStatus.FINISHED})

TURN_TRANSITIONS: Mapping[TurnStatus, frozenset[TurnStatus]] = MappingProxyType(
    {
        TurnStatus.CREATED: frozenset({TurnStatus.QUEUED}) | _END,
        # A worker whose servers need no preparation goes straight to work.
        TurnStatus.QUEUED: frozenset({TurnStatus.STARTING, TurnStatus.RUNNING_TURN}) | _END,
        TurnStatus.STARTING: frozenset({TurnStatus.IDLE, TurnStatus.RUNNING_TURN}) | _END,
        TurnStatus.IDLE: frozenset({TurnStatus.RUNNING_TURN}) | _END,
        TurnStatus.RUNNING_TURN: frozenset({TurnStatus.WAITING_FOR_INPUT}) | _END,
        TurnStatus.WAITING_FOR_INPUT: frozenset({TurnStatus.RUNNING_TURN}) | _END,
        TurnStatus.CLOSING: frozenset({TurnStatus.FINISHED}),
        TurnStatus.FINISHED: frozenset(),
    }
)
"""From each status, the statuses that may follow. Every unfinished turn may end (C41)."""


def check_turn_transition(old: TurnStatus, new: TurnStatus) -> None:
    """Raise StateConflict unless a turn may go from `old` to `new`."""
    if new not in TURN_TRANSITIONS[old]:
        raise StateConflict(
            f"A turn that is {old} cannot become {new}.",
            details={"status": old.value, "wanted": new.value},
        )


class ApiStatus(StrEnum):
    """The m8tes words for a run that follow from its turns; `closed` is a flag of the run itself."""

    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_API_OUTCOMES: Mapping[Outcome, ApiStatus] = MappingProxyType(
    {
        Outcome.COMPLETED: ApiStatus.COMPLETED,
        Outcome.FAILED: ApiStatus.FAILED,
        Outcome.TIMED_OUT: ApiStatus.FAILED,
        Outcome.CANCELLED: ApiStatus.CANCELLED,
        Outcome.INTERRUPTED: ApiStatus.FAILED,
    }
)


def api_status(turn_status: TurnStatus, outcome: Outcome | None) -> ApiStatus:
    """The m8tes word for a turn (design section 2, m8tes-http 2).

    Raises ValueError when `finished` and an outcome do not come together, which no stored turn may have.
    """
    if (turn_status is TurnStatus.FINISHED) != (outcome is not None):
        raise ValueError(f"A turn that is {turn_status} cannot have the outcome {outcome}.")
    if outcome is not None:
        return _API_OUTCOMES[outcome]
    if turn_status is TurnStatus.WAITING_FOR_INPUT:
        return ApiStatus.AWAITING_APPROVAL
    return ApiStatus.RUNNING


class PermissionMode(DescribedEnum):
    """How much an agent may do without asking (m8tes-http 4.4), the laxest first."""

    AUTONOMOUS = "autonomous", "Calls run without asking, except where a rule or a strict tool asks."
    APPROVAL = "approval", "Calls that are not safe ask a person first."
    PLAN = "plan", "Nothing but safe calls until a person has approved a plan."


_STRICTNESS: Mapping[PermissionMode, int] = MappingProxyType(
    {PermissionMode.AUTONOMOUS: 0, PermissionMode.APPROVAL: 1, PermissionMode.PLAN: 2}
)


def stricter(a: PermissionMode, b: PermissionMode) -> PermissionMode:
    """The less lax of two modes: a child run's mode is never laxer than its parent's (design section 2)."""
    return max(a, b, key=_STRICTNESS.__getitem__)


class HumanInput(DescribedEnum):
    """Whether a run may ask people at all (C1, C5)."""

    FAIL = "fail", "Nobody may be asked; a pause ends the turn with human_input_required."
    MANAGED = "managed", "The run pauses and waits for people."


class CallPhase(DescribedEnum):
    """How far a ToolCall has come; each phase is committed before the next step (design section 6)."""

    PREPARED = "prepared", "Recorded, not yet sent; no side effect is possible."
    SENT = "sent", "Sent to the server; the answer is not known yet."
    INPUT_REQUIRED = "input_required", "The server asked for input and waits for it."
    DONE = "done", "The server answered with a result."
    FAILED = "failed", "The server, or the way to it, answered with an error."
    DENIED = "denied", "Not permitted, and never sent."
    UNKNOWN = "unknown", "Sent, but whether it took effect is not known; a person has to say."
