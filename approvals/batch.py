"""Which calls may be allowed together, and in words why one of them may not (R21)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from approvals.facts import Effect
from approvals.permission import Decision
from runs import clock
from runs.canonical import digest
from runs.errors import ManagedInputValidationError
from runs.models import Round
from runs.risk import Risk
from runs.round_rows import ended_sentence
from runs.round_states import RoundStatus

MOST_TOGETHER: Final = 50
"""Calls that one page lists and one decision allows; nobody reads more of them with care."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A call that a person chose: its pause, and the digest of the arguments that they saw (R12)."""

    round_id: str
    shown_digest: str


def checked(choices: Sequence[Choice], idempotency_key: str) -> list[Choice]:
    """The choices without repetitions. Raises ManagedInputValidationError for none, too many, or no key."""
    chosen = list(dict.fromkeys(choices))
    if not idempotency_key:
        raise ManagedInputValidationError(
            "An idempotency key is needed; make one for this decision and keep it."
        )
    if not chosen:
        raise ManagedInputValidationError("Choose at least one call.")
    if len(chosen) > MOST_TOGETHER:
        raise ManagedInputValidationError(f"Choose at most {MOST_TOGETHER} calls at once.")
    return chosen


def member_key(idempotency_key: str, choices: Sequence[Choice]) -> str:
    """The key under which every chosen pause is answered.

    It stands for the whole choice: the same key with other members is another decision, and refused wherever a
    member was decided by the first one (R3).
    """
    members = sorted([choice.round_id, choice.shown_digest] for choice in choices)
    return f"several:{digest([idempotency_key, members])}"


def overdue(round_: Round) -> bool:
    """Whether its deadline has passed without an end."""
    pending = round_.status == RoundStatus.PENDING
    return pending and round_.deadline is not None and round_.deadline <= clock.now()


def changed(round_: Round, shown_digest: str) -> str | None:
    """Why a chosen pause is not what its person saw any more; None if it is."""
    if round_.status != RoundStatus.PENDING:
        return ended_sentence(round_)
    if shown_digest != round_.shown_digest:
        return "What you were shown is not what is pending now. Look at its arguments again."
    return None


def why_alone(round_: Round, decision: Decision) -> str | None:
    """Why a call is never allowed together with others; None if it may be.

    `decision` is the call decided anew. A tool counts as strict if it is now, or was when the call asked; the same goes
    for a change that has to be read.
    """
    verdict = round_.context.get("verdict") or {}
    # A change has to be read before it is allowed, and only the call's own card shows it (R28).
    if decision.effect is Effect.DENY or decision.risk is Risk.STRICT or decision.diff is not None:
        return decision.reason
    if verdict.get("risk") == Risk.STRICT or verdict.get("diff"):
        return str(verdict.get("reason") or Risk.STRICT.describe)
    return None
