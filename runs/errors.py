"""The one family of errors: a stable code, an HTTP status, and a message that says what to do next.

Plain module. Transports turn any `M3Error` into one JSON shape (see `m3web.api.errors`) or one page notice;
nothing else maps errors to status codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class M3Error(Exception):
    """Base of every error that a caller may see.

    `message` is a sentence for a person; `details` are JSON-safe facts for a program (field errors, the
    current state of what was acted on).
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 400

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})


class ModelValidationError(M3Error):
    """An argument of a submission or of a stored definition is not acceptable (C1, C48)."""

    code = "invalid_argument"
    status = 422


class NotFound(M3Error):
    """Not there, or not yours: the two look the same (house style 9)."""

    code = "not_found"
    status = 404


class NotAllowed(M3Error):
    """Signed in, but the role does not permit it."""

    code = "not_allowed"
    status = 403


class StateConflict(M3Error):
    """The thing is no longer in a state that permits this; `details` carry the present state."""

    code = "state_conflict"
    status = 409


class TryAgain(M3Error):
    """Others changed the same at this moment, and came first; nothing was stored. Over in a moment (`runs.races`)."""

    code = "try_again"
    status = 503

    def __init__(self) -> None:
        super().__init__(
            "Somebody else was changing the same at this moment, so nothing of this was stored. Try again."
        )


class DatabaseAway(M3Error):
    """The database server does not answer (`runs.races`). What was sent may have been stored or not."""

    code = "database_away"
    status = 503

    def __init__(self) -> None:
        super().__init__(
            "The database does not answer at the moment. If you sent something, send it again under the same key: it "
            "counts once."
        )


class EgressRefused(M3Error):
    """A URL that this installation must not call (private address, wrong scheme, userinfo)."""

    code = "egress_refused"
    status = 422


class SessionBusyError(M3Error):
    """Another worker drives this run (A24), or a kit still works on a store that is to be closed."""

    code = "session_busy"
    status = 409


class SessionClosedError(M3Error):
    """What was asked for is closed already: a kit, or the store behind it."""

    code = "session_closed"
    status = 409


class LeaseLost(M3Error):
    """The run was taken over, cancelled or finished by someone else; nothing was written (design section 6)."""

    code = "lease_lost"
    status = 409


class OperationTimeout(M3Error):
    """A deadline passed (C40)."""

    code = "timeout"
    status = 409


class OperationCancelled(M3Error):
    """The run was cancelled. Whatever else raced with it, the code is this one."""

    code = "cancelled"
    status = 409


class ElicitationRoundLimitError(M3Error):
    """One operation asked more often than its round limit allows (C42)."""

    code = "elicitation_round_limit"
    status = 409


class ManagedInputError(M3Error):
    """Base of the managed-input family."""

    code = "managed_input_error"
    status = 409


class ManagedInputConflict(ManagedInputError):
    """Stale ownership, an idempotency conflict, or a concurrent update."""

    code = "managed_input_conflict"


class ManagedInputValidationError(ManagedInputError):
    """Malformed ids, response maps, actions or schema content; the round stays pending."""

    code = "managed_input_invalid"
    status = 422


class ManagedInputStateError(ManagedInputError):
    """The transition or response does not fit the round's current state."""

    code = "managed_input_state"


class ManagedInputRecoveryError(ManagedInputError):
    """The round cannot safely be recovered or reclaimed."""

    code = "managed_input_recovery_unavailable"
