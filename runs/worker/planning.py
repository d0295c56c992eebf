"""Answering elicitations with what the submission gave in advance, through the same rounds as people do.

Only where nobody may be asked: the plan and people exclude each other (C3). Everything here runs inside the worker's
fenced boundary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runs import planned, rounds
from runs.errors import ManagedInputValidationError
from runs.models import Round, ToolCall, Turn
from runs.round_checks import check_response
from runs.round_rows import Decider

VIA = "plan"
"""How history calls an answer that was given in advance."""

MAX_QUOTED = 200


def refusal(turn: Turn, call: ToolCall, asked: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Why the plan does not answer all of this, in a sentence; None if it does."""
    found = _choose(turn, call, asked)
    if found is None:
        return f"No predefined answer fits what {call.full_name} asks: {_quoted(asked)}"
    try:
        for key, index in found.items():
            check_response(asked[key], key, turn.planned[index]["response"])
    except ManagedInputValidationError as error:
        return f"A predefined answer cannot be used for {call.full_name}: {error.message}"
    return None


def answer(turn: Turn, call: ToolCall, round_: Round) -> Round:
    """Answer a round that was opened a moment ago, and mark the answers that it takes as used."""
    found = _choose(turn, call, round_.requests)
    if found is None:
        raise RuntimeError(f"round {round_.pk} was opened for a plan that does not answer it")
    responses = {key: turn.planned[index]["response"] for key, index in found.items()}
    for index in found.values():
        turn.planned[index] = {**turn.planned[index], "used": round_.pk}
    turn.save(update_fields=["planned"])
    decider = Decider(user=None, via=VIA)
    key = f"{VIA}:{round_.pk}"
    return rounds.accepted(rounds.try_answer(round_.pk, responses, decider=decider, idempotency_key=key))


def _choose(turn: Turn, call: ToolCall, asked: Mapping[str, Mapping[str, Any]]) -> dict[str, int] | None:
    return planned.choose(turn.planned, asked, server=call.server_name, operation=call.name)


def _quoted(asked: Mapping[str, Mapping[str, Any]]) -> str:
    words = "; ".join(f"{key}: “{request.get('message', '')}”" for key, request in asked.items())
    return words if len(words) <= MAX_QUOTED else f"{words[:MAX_QUOTED]}…"
