"""What the store demands of its arguments, before it looks at any row, and of the lease of whoever changes one."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, Final

from runs.errors import ManagedInputConflict, ManagedInputStateError, ManagedInputValidationError
from runs.managed_input.values import ElicitationResponse, PendingElicitationRound, name, plain_json
from runs.models import UNRESOLVED, Round
from runs.round_states import DeliveryState, RoundStatus, check_index, lease_live

MAX_COUNT: Final = 2_147_483_647
"""The largest round limit that every database can keep."""

ROUND_ID: Final = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*")

RENEWABLE: Final = frozenset(
    {RoundStatus.PENDING, RoundStatus.RESPONSE_VALIDATED, RoundStatus.DELIVERY_STARTED}
)


def check_texts(**arguments: object) -> None:
    """Raise ManagedInputValidationError unless every argument is a text that can be stored and is not empty (C12)."""
    for argument, value in arguments.items():
        if not isinstance(value, str):
            raise ManagedInputValidationError(f"{argument} must be a text, not {type(value).__name__}.")
        try:
            name(value)
        except ValueError as error:
            raise ManagedInputValidationError(f"{argument} cannot be used: {error}") from None


def check_optional_texts(**arguments: object) -> None:
    """The same for what may be left out."""
    check_texts(**{key: value for key, value in arguments.items() if value is not None})


def check_pending(pending: object) -> None:
    """Raise ManagedInputValidationError unless this is a pending round whose id pages and API can address.

    They have the id as a part of a path, and before a colon (`round_id:key`).
    """
    if not isinstance(pending, PendingElicitationRound):
        raise ManagedInputValidationError("A round is created from a PendingElicitationRound.")
    if not ROUND_ID.fullmatch(pending.round_id):
        raise ManagedInputValidationError(
            "The id of a round is made of letters, digits, dots, dashes and underscores, and begins with one of "
            "the first two."
        )


def lease_span(lease_seconds: object) -> dt.timedelta:
    """The length of a lease. Raises ManagedInputValidationError unless it is a positive, finite number of seconds."""
    problem = ManagedInputValidationError("lease_seconds must be a number above zero.")
    if not isinstance(lease_seconds, int | float) or isinstance(lease_seconds, bool):
        raise problem
    try:
        span = dt.timedelta(seconds=lease_seconds)
    except (ValueError, OverflowError):
        raise problem from None
    if span <= dt.timedelta(0):
        raise problem
    return span


def lease_end(now: dt.datetime, span: dt.timedelta) -> dt.datetime:
    try:
        return now.astimezone(dt.UTC) + span
    except OverflowError:
        raise ManagedInputValidationError("lease_seconds reaches beyond the calendar.") from None


def check_count(index: object, limit: object) -> None:
    """Raise ManagedInputValidationError unless 0 <= index < limit, both integers that can be stored (C10)."""
    check_index(index, limit)
    if isinstance(limit, int) and limit > MAX_COUNT:
        raise ManagedInputValidationError(f"round_limit may be {MAX_COUNT:,} at most.")


def parameters_of(operation_parameters: object) -> dict[str, Any]:
    """A copy of the parameters of an operation; None means none."""
    if operation_parameters is None:
        return {}
    if not isinstance(operation_parameters, Mapping):
        raise ManagedInputValidationError("operation_parameters must be a mapping.")
    try:
        copied: dict[str, Any] = plain_json(operation_parameters)
    except ValueError as error:
        raise ManagedInputValidationError(f"operation_parameters are not JSON: {error}") from None
    return copied


def payload_of(responses: object) -> dict[str, dict[str, Any]]:
    """Responses as a round stores them. Raises ManagedInputValidationError unless all are ElicitationResponse (C14)."""
    if not isinstance(responses, Mapping):
        raise ManagedInputValidationError("responses must be a mapping of request keys to responses.")
    for key, response in responses.items():
        if not isinstance(key, str) or not isinstance(response, ElicitationResponse):
            raise ManagedInputValidationError(f"The answer for {key!r} must be an ElicitationResponse.")
    return {key: stored_response(response) for key, response in responses.items()}


def stored_response(response: ElicitationResponse) -> dict[str, Any]:
    """A response in the stored shape: what it does not have is absent."""
    stored: dict[str, Any] = {"action": response.action}
    for part, value in (("content", response.content), ("meta", response.meta)):
        if value is not None:
            stored[part] = plain_json(value)
    return stored


def evidence(delivery_state: object) -> DeliveryState | None:
    """What a claimer says of the delivery; a word that we do not know proves nothing."""
    try:
        return DeliveryState(delivery_state)  # type: ignore[arg-type]  # any value may be tried
    except ValueError:
        return None


def check_owner(round_: Round, owner_id: str, lease_token: str) -> None:
    """Raise ManagedInputConflict unless owner and token are both those of the row (C28)."""
    if (round_.lease_owner, round_.lease_token) != (owner_id, lease_token):
        raise ManagedInputConflict(
            "Another lease holds this round. Whoever lost a lease may change nothing any more."
        )


def check_live(round_: Round, now: dt.datetime) -> None:
    """Raise ManagedInputConflict if the lease is over (C23)."""
    if not lease_live(now, round_.lease_expires_at):
        raise ManagedInputConflict("The lease on this round has expired. Claim the round first.")


def check_expired(round_: Round, now: dt.datetime) -> None:
    """Raise ManagedInputConflict while the lease still holds (C31, C34)."""
    if lease_live(now, round_.lease_expires_at):
        raise ManagedInputConflict("The lease on this round still holds. Wait until it has expired.")


def check_token(round_: Round, expected: str | None) -> None:
    """Raise ManagedInputConflict unless the claimer knows the token of the lease that expired (C31, C34)."""
    if round_.lease_token != expected:
        raise ManagedInputConflict("The round has another lease token. Read the round again, then decide.")


def check_not_failed(round_: Round) -> None:
    """A failed round takes no answer (C25, C36)."""
    if round_.status == RoundStatus.FAILED:
        raise ManagedInputStateError(
            f"The round has failed ({round_.failure_code}); it takes no answer any more.",
            details={"status": round_.status, "code": round_.failure_code},
        )


def check_renewable(round_: Round) -> None:
    """A lease is renewed until the answer has been delivered (C29)."""
    if round_.status not in RENEWABLE:
        raise ManagedInputStateError(
            f"The round is {round_.status}; its lease is no longer renewed.",
            details={"status": round_.status},
        )


def may_fail(round_: Round, code: str, message: str) -> bool:
    """Whether the round still has to fail; False if it did so for the same reason (C33).

    Raises ManagedInputConflict if it failed for another reason, ManagedInputStateError if it is resolved.
    """
    if round_.status == RoundStatus.RESOLVED:
        raise ManagedInputStateError(
            "The round is resolved; it cannot fail any more.", details={"status": round_.status}
        )
    if round_.status != RoundStatus.FAILED:
        return True
    if (round_.failure_code, round_.failure_message) != (code, message):
        raise ManagedInputConflict(
            f"The round has failed already, for another reason ({round_.failure_code})."
        )
    return False


def check_losable(round_: Round, now: dt.datetime) -> None:
    """Raise unless the round can have been lost (C34): unresolved, its lease expired, a live session behind it.

    A round that nobody holds is parked; whoever claims it goes on, and nothing is lost (design section 5).
    """
    if round_.status not in UNRESOLVED:
        raise ManagedInputStateError(
            f"The round has ended ({round_.status}); nothing of it is lost.",
            details={"status": round_.status},
        )
    check_expired(round_, now)
    if not round_.held:
        raise ManagedInputStateError(
            "No live session waits on this round, so nothing is lost: claim it and go on.",
            details={"status": round_.status},
        )
