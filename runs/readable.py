"""Whether what is stored of a pause can be read: the one word on it for pages, API and answers (C46).

Plain module, and it knows only what is asked. `runs.managed_input.rows` reads the rest of a row when the store hands
it out, and refuses it with the same sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from runs.errors import ManagedInputValidationError
from runs.requests import APPROVAL_KEY, OUTCOME_KEY, PLAN_KEY
from runs.round_states import RoundKind

_OWN_KEY: Final = {
    RoundKind.APPROVAL.value: APPROVAL_KEY,
    RoundKind.PLAN.value: PLAN_KEY,
    RoundKind.OUTCOME.value: OUTCOME_KEY,
}
_NEEDED: Final = {"form": ("requested_schema", object), "url": ("url", str)}
"""What a request of each mode must have. A schema may be anything that is there: forms cope with every one."""


class Stored(Protocol):
    """What of a row is looked at."""

    kind: str
    requests: Any
    context: Any


def is_readable(round_: Stored) -> bool:
    """Whether the row says what is asked; a damaged one is shown as such and never guessed at."""
    requests = round_.requests
    if not isinstance(requests, Mapping) or not requests or not isinstance(round_.context, Mapping):
        return False
    own = _OWN_KEY.get(round_.kind)
    return (own is None or own in requests) and all(map(_is_whole, requests.values()))


def check_readable(round_: Stored, round_id: str) -> None:
    """Raise ManagedInputValidationError for a damaged row: nobody can answer what nobody can read."""
    if not is_readable(round_):
        raise unreadable(round_id)


def unreadable(round_id: str) -> ManagedInputValidationError:
    """The refusal of a damaged row."""
    return ManagedInputValidationError(
        f"What is stored of round {round_id} cannot be read; its row was damaged. Cancel its run."
    )


def _is_whole(request: object) -> bool:
    if not isinstance(request, Mapping) or not isinstance(request.get("message", ""), str):
        return False
    mode = request.get("mode")
    if not isinstance(mode, str) or mode not in _NEEDED:
        return False
    name, kind = _NEEDED[mode]
    return name in request and isinstance(request[name], kind)
