"""The one place where errors become the API's JSON shape (m8tes-http 1.11)."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from runs import races
from runs.errors import DatabaseAway, M3Error, TryAgain

logger = logging.getLogger(__name__)

TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "invalid_request_error",
    422: "validation_error",
    429: "rate_limit_error",
}
_NOT_A_FIELD = "non_field_errors"


def envelope(error: M3Error) -> dict[str, Any]:
    return _envelope(error.status, error.code, error.message, error.details)


def headers_of(error: M3Error) -> dict[str, str]:
    """What an answer says beside its body."""
    return {"Retry-After": "1"} if isinstance(error, TryAgain | DatabaseAway) else {}


def handle(exception: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler: every refusal, ours or the framework's, in one shape.

    Anything else is a mistake of ours: it is logged with the `request_id` that the caller gets, and answered with
    a 500 that says nothing of its inside.
    """
    if races.refused_for_now(exception):
        logger.warning("an API request lost a race: %s", exception)
        exception = TryAgain()
    elif races.away(exception):
        logger.warning("an API request had no database: %s", str(exception).strip())
        exception = DatabaseAway()
    if isinstance(exception, M3Error):
        return Response(envelope(exception), status=exception.status, headers=headers_of(exception))
    if isinstance(exception, Http404):
        return _response(404, "not_found", "There is nothing here.")
    if isinstance(exception, PermissionDenied):
        return _response(403, "not_allowed", "You may not do this.")
    if isinstance(exception, exceptions.APIException):
        return _of_framework(exception)
    response = _response(500, "internal_error", "Something failed on our side. Try again later.")
    request_id = response.data["error"]["request_id"]
    logger.error("API request %s failed", request_id, exc_info=exception)
    return response


def _of_framework(exception: exceptions.APIException) -> Response:
    if isinstance(exception, exceptions.ValidationError):
        message = "The request does not fit. Correct the fields named in details."
        fields = list(_mistakes(exception.detail))
        return _response(422, "invalid_argument", message, {"fields": fields})
    if isinstance(exception, exceptions.ParseError):
        return _response(422, "invalid_json", f"The body is not JSON: {exception.detail}")
    if isinstance(exception, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        message = (
            str(exception.detail)
            if isinstance(exception, exceptions.AuthenticationFailed)
            else "You are not signed in, or your session has expired. Sign in, or send an API key."
        )
        response = _response(exception.status_code, "not_authenticated", message)
        if challenge := getattr(exception, "auth_header", None):
            response["WWW-Authenticate"] = challenge
        return response
    code = exception.get_codes()
    return _response(exception.status_code, code if isinstance(code, str) else "error", str(exception.detail))


def _mistakes(detail: Any, path: tuple[str | int, ...] = ()) -> Iterator[dict[str, Any]]:
    """The framework's nested error detail as the list that `M3Error.details["fields"]` is everywhere else."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _mistakes(inner, path if name == _NOT_A_FIELD else (*path, name))
    elif isinstance(detail, list | tuple):
        for inner in detail:
            yield from _mistakes(inner, path)
    else:
        yield {"path": list(path), "message": str(detail)}


def _response(status: int, code: str, message: str, details: Mapping[str, Any] | None = None) -> Response:
    return Response(_envelope(status, code, message, details or {}), status=status)


def _envelope(status: int, code: str, message: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """`error_code` stands in both places, because clients of different age look in either.

    A 422 always has `fields`, so that a client may read it without asking; it is empty where the mistake
    belongs to no single field.
    """
    fields: dict[str, Any] = {"fields": []} if status == 422 else {}
    return {
        "error": {
            "type": TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error"),
            "message": message,
            "code": status,
            "error_code": code,
            "request_id": uuid.uuid4().hex,
            "details": {**fields, **details, "error_code": code},
        }
    }
