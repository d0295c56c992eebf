"""The rules of a round: its states, its exact keys, its idempotency and its lease.

Plain module: no clock and no row in it; the store passes both in. Sources: C10, C13, C20, C21, C23 and C30-C32;
design section 2 for kinds and outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from runs.canonical import canonical_json
from runs.described import DescribedEnum
from runs.errors import ManagedInputRecoveryError, ManagedInputStateError, ManagedInputValidationError
from runs.steps import Json


class RoundStatus(DescribedEnum):
    """The six M3 statuses."""

    PENDING = "pending", "Waits for a person."
    RESPONSE_VALIDATED = "response_validated", "The answer is stored; it has not been delivered yet."
    DELIVERY_STARTED = "delivery_started", "A worker is handing the answer over."
    DELIVERED = "delivered", "The answer has been handed over."
    RESOLVED = "resolved", "The operation went on with the answer."
    FAILED = "failed", "The pause ended without a delivered answer."


class RoundKind(DescribedEnum):
    """Who asks (design section 1)."""

    ELICITATION = "elicitation", "A server or a local tool asks for input."
    APPROVAL = "approval", "A tool call asks for permission."
    QUESTION = "question", "The agent asks a question."
    PLAN = "plan", "The agent proposes a plan."
    OUTCOME = "outcome", "A started call has no known result; a person says what became of it."


class RoundOutcome(DescribedEnum):
    """What became of a pause; allowed, denied, timed_out and cancelled are never mixed up (R31)."""

    ANSWERED = "answered", "A person answered."
    ALLOWED = "allowed", "The call was allowed."
    DENIED = "denied", "The call was denied."
    CANCELLED = "cancelled", "The run was cancelled while it waited."
    TIMED_OUT = "timed_out", "Nobody answered before the deadline."
    SUPERSEDED = "superseded", "Something else took the place of this pause."
    RECOVERY_UNAVAILABLE = "recovery_unavailable", "The session that waited for the answer was lost."


FAILURE_CODES: Final[Mapping[str, RoundOutcome]] = MappingProxyType(
    {
        "recovery_unavailable": RoundOutcome.RECOVERY_UNAVAILABLE,
        "timeout": RoundOutcome.TIMED_OUT,
        "cancelled": RoundOutcome.CANCELLED,
        "superseded": RoundOutcome.SUPERSEDED,
    }
)
"""The failure code of each way in which a pause ends unanswered: one code per cause, whatever the race."""

TERMINAL: Final = frozenset({RoundStatus.RESOLVED, RoundStatus.FAILED})
UNRESOLVED: Final = frozenset(RoundStatus) - TERMINAL

ROUND_TRANSITIONS: Final[Mapping[RoundStatus, frozenset[RoundStatus]]] = MappingProxyType(
    {
        RoundStatus.PENDING: frozenset({RoundStatus.RESPONSE_VALIDATED, RoundStatus.FAILED}),
        RoundStatus.RESPONSE_VALIDATED: frozenset({RoundStatus.DELIVERY_STARTED, RoundStatus.FAILED}),
        # Back to response_validated: a claim that proves the delivery did not happen and may be repeated.
        RoundStatus.DELIVERY_STARTED: frozenset(
            {RoundStatus.DELIVERED, RoundStatus.RESPONSE_VALIDATED, RoundStatus.FAILED}
        ),
        RoundStatus.DELIVERED: frozenset({RoundStatus.RESOLVED, RoundStatus.FAILED}),
        RoundStatus.RESOLVED: frozenset(),
        RoundStatus.FAILED: frozenset(),
    }
)

_DELIVERY_ORDER: Final[Mapping[RoundStatus, RoundStatus]] = MappingProxyType(
    {
        RoundStatus.DELIVERY_STARTED: RoundStatus.RESPONSE_VALIDATED,
        RoundStatus.DELIVERED: RoundStatus.DELIVERY_STARTED,
        RoundStatus.RESOLVED: RoundStatus.DELIVERED,
    }
)
"""For each delivery status, the one status it may follow."""


def must_move(current: RoundStatus, target: RoundStatus) -> bool:
    """Whether start_delivery, mark_delivered or resolve (`target`) still has to change the row (C30).

    False: the row is there already and the call is a no-op. Raises ManagedInputStateError when a step would
    be skipped or undone.
    """
    if current is target:
        return False
    if _DELIVERY_ORDER[target] is not current:
        raise ManagedInputStateError(
            f"The round is {current}; {target} follows {_DELIVERY_ORDER[target]} only.",
            details={"status": current.value, "wanted": target.value},
        )
    return True


class DeliveryState(StrEnum):
    """What a claimer can prove about the delivery of an answer (C31)."""

    NOT_STARTED = "not_started"
    NOT_DELIVERED = "not_delivered"
    DELIVERED = "delivered"


def claim_target(
    status: RoundStatus,
    failure_code: str | None,
    delivery_state: DeliveryState | None,
    *,
    idempotent_delivery: bool,
) -> RoundStatus:
    """The status of a round after a claim, decided before lease and token are looked at (order of C31).

    `idempotent_delivery` is the proof that a repeated delivery does no harm (C32). Raises
    ManagedInputRecoveryError when the round failed with recovery_unavailable or the evidence does not fit its
    status, ManagedInputStateError when it ended in any other way.
    """
    if status is RoundStatus.FAILED and failure_code == "recovery_unavailable":
        raise ManagedInputRecoveryError("The session that waited for this round was lost.")
    if status in TERMINAL:
        raise ManagedInputStateError(
            f"The round is {status}; there is nothing left to claim.", details={"status": status.value}
        )
    target = _PROVEN.get((status, delivery_state))
    if target is None:
        raise ManagedInputRecoveryError(
            f"The evidence {delivery_state} does not show how to go on with a round that is {status}.",
            details={"status": status.value},
        )
    if delivery_state is DeliveryState.NOT_DELIVERED and not idempotent_delivery:
        raise ManagedInputRecoveryError(
            "Delivering the answer again needs proof that a repeat does no harm.",
            details={"status": status.value},
        )
    return target


_PROVEN: Final[Mapping[tuple[RoundStatus, DeliveryState | None], RoundStatus]] = MappingProxyType(
    {
        (RoundStatus.PENDING, DeliveryState.NOT_STARTED): RoundStatus.PENDING,
        (RoundStatus.RESPONSE_VALIDATED, DeliveryState.NOT_DELIVERED): RoundStatus.RESPONSE_VALIDATED,
        (RoundStatus.DELIVERY_STARTED, DeliveryState.NOT_DELIVERED): RoundStatus.RESPONSE_VALIDATED,
        (RoundStatus.DELIVERY_STARTED, DeliveryState.DELIVERED): RoundStatus.DELIVERED,
        (RoundStatus.DELIVERED, DeliveryState.DELIVERED): RoundStatus.DELIVERED,
    }
)


def check_keys(expected: Iterable[str], given: Iterable[str]) -> None:
    """Raise ManagedInputValidationError unless the keys are exactly the expected ones (C13, A21).

    The error's details list `missing` and `unknown` keys, sorted.
    """
    wanted, got = set(expected), set(given)
    missing, unknown = sorted(wanted - got), sorted(got - wanted, key=str)
    if not missing and not unknown:
        return
    parts = []
    if missing:
        parts.append("missing: " + ", ".join(missing))
    if unknown:
        parts.append("unknown: " + ", ".join(map(str, unknown)))
    raise ManagedInputValidationError(
        f"The answer must cover exactly the requests of the round ({'; '.join(parts)}).",
        details={"missing": missing, "unknown": unknown},
    )


def check_index(index: object, limit: object) -> None:
    """Raise ManagedInputValidationError unless 0 <= index < limit, both real integers (C10)."""
    for name, value in (("round_index", index), ("round_limit", limit)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise ManagedInputValidationError(f"{name} must be an integer, not {type(value).__name__}.")
    assert isinstance(index, int)  # noqa: S101 - narrows the type; the loop above has checked it
    assert isinstance(limit, int)  # noqa: S101
    if not 0 <= index < limit:
        raise ManagedInputValidationError(
            f"round_index must be at least 0 and below round_limit, but {index} of {limit} was given."
        )


class Replay(StrEnum):
    """What a submission is in the light of one that was stored before."""

    NEW = "new"
    SAME = "same"
    CONFLICT = "conflict"


def replay(existing_key: str | None, existing_payload: Json, key: str, payload: Json) -> Replay:
    """Compare a submission with the stored one (C20, C21).

    Same key and same payload is SAME; nothing stored is NEW; everything else, a new key with the old payload
    included, is CONFLICT. The order of object keys does not matter; 1 and 1.0 are different.
    """
    if existing_key is None:
        return Replay.NEW
    if existing_key != key or canonical_json(existing_payload) != canonical_json(payload):
        return Replay.CONFLICT
    return Replay.SAME


def lease_live(now: datetime, expires_at: datetime) -> bool:
    """Whether a lease still holds; it is dead at exactly `expires_at` (C23). Both are timezone-aware."""
    return now < expires_at
