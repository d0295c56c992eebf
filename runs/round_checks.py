"""What an answer to a round must look like, and how the answered round is called. Nothing here changes a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runs.errors import ManagedInputValidationError
from runs.models import Round
from runs.requests import APPROVAL_KEY
from runs.round_states import RoundKind, RoundOutcome, check_keys
from runs.schema_check import FieldError, SchemaProblem, validate

_ALWAYS_ACCEPTED = frozenset({RoundKind.APPROVAL, RoundKind.PLAN, RoundKind.OUTCOME})


def checked_shape(responses: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """A copy of `responses`, each of them {"action", "content"?} (C14). Raises ManagedInputValidationError."""
    for key, response in responses.items():
        if not isinstance(response, Mapping) or not {"action"} <= response.keys() <= {"action", "content"}:
            raise ManagedInputValidationError(
                f"The answer for {key!r} must be an action with or without content."
            )
    return {key: dict(response) for key, response in responses.items()}


def check_responses(round_: Round, responses: Mapping[str, Mapping[str, Any]]) -> None:
    """Exact keys, known actions, valid content (C13-C17).

    Approvals, plans and outcomes are our own forms and are always accepted: a deny is an accepted form that
    says deny (design section 1). Raises ManagedInputValidationError with field errors.
    """
    check_keys(round_.requests.keys(), responses.keys())
    for key, response in responses.items():
        check_response(round_.requests[key], key, response)
        if round_.kind in _ALWAYS_ACCEPTED and response["action"] != "accept":
            raise ManagedInputValidationError(
                f"The {round_.kind} is answered by accepting its form with a decision, also to refuse it."
            )


def check_response(request: Mapping[str, Any], key: str, response: Mapping[str, Any]) -> None:
    """One answer against its request."""
    action, content = response.get("action"), response.get("content")
    if action not in ("accept", "decline", "cancel"):
        raise ManagedInputValidationError(f"The action for {key!r} must be accept, decline or cancel.")
    if action != "accept" or request["mode"] == "url":
        if content is not None:
            raise ManagedInputValidationError(f"The answer for {key!r} may carry no content with {action}.")
        return
    if not isinstance(content, Mapping):
        raise ManagedInputValidationError(f"An accepted form needs content for {key!r}.")
    check_form(request["requested_schema"], content, key=key)


def check_form(schema: Any, content: Any, *, key: str, under: Iterable[str] = ()) -> None:
    """Content against a schema; `under` is where in the answer for `key` the content stands.

    Raises ManagedInputValidationError whose details name every field that is wrong.
    """
    try:
        problems = validate(schema, content)
    except SchemaProblem as problem:
        raise ManagedInputValidationError(f"The form for {key!r} cannot be checked: {problem}") from problem
    if problems:
        raise ManagedInputValidationError(
            f"The answer for {key!r} does not fit its form. Correct the fields named.",
            details={"fields": [_field(key, under, error) for error in problems]},
        )


def _field(key: str, under: Iterable[str], error: FieldError) -> dict[str, Any]:
    return {"key": key, "path": [*under, *error.path], "message": error.message}


def outcome_of(round_: Round, payload: Mapping[str, Mapping[str, Any]]) -> RoundOutcome:
    """How the answered round is called in database, API and page (R31)."""
    if round_.kind == RoundKind.APPROVAL:
        allowed = payload[APPROVAL_KEY]["content"]["decision"] == "allow"
        return RoundOutcome.ALLOWED if allowed else RoundOutcome.DENIED
    return RoundOutcome.ANSWERED
