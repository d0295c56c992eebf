"""What can be done next for one operation, read off its rows. Pure; the driver carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from runs.models import Round, ToolCall
from runs.round_states import RoundKind, RoundStatus
from runs.run_states import CallPhase
from runs.worker import task_facts


class Move(Enum):
    GATE = auto()
    APPLY_APPROVAL = auto()
    APPLY_ANSWERS = auto()
    APPLY_OUTCOME = auto()
    SEND = auto()
    RECOVER = auto()
    FOLLOW = auto()
    PARKED = auto()


_APPLY = {
    RoundKind.APPROVAL: Move.APPLY_APPROVAL,
    RoundKind.ELICITATION: Move.APPLY_ANSWERS,
    RoundKind.OUTCOME: Move.APPLY_OUTCOME,
}


def next_move(call: ToolCall, rounds: Sequence[Round]) -> tuple[Move, Round | None]:
    """The one move that these rows permit, with the round it is about.

    `rounds` are the step's rounds that are not over. A call that is `sent` has, as seen by a driver that is not
    itself in the middle of it, lost the worker that sent it; one whose server answered with a task is asked about.
    """
    if any(round_.status == RoundStatus.PENDING and not round_.held for round_ in rounds):
        return Move.PARKED, None
    if task_facts.followed(call) is not None:
        return Move.FOLLOW, None
    if call.phase == CallPhase.SENT:
        return Move.RECOVER, None
    if call.allowed:
        return Move.SEND, None
    for round_ in rounds:
        if round_.status == RoundStatus.RESPONSE_VALIDATED:
            return _APPLY[RoundKind(round_.kind)], round_
    if call.phase == CallPhase.PREPARED:
        return Move.GATE, None
    return Move.PARKED, None
