"""The one place where errors become the API's JSON shape (contract m8tes-http 1.11)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from runs.errors import M3Error

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "invalid_request_error",
    422: "validation_error",
    429: "rate_limit_error",
}


def envelope(error: M3Error) -> dict[str, Any]:
    return _envelope(error.status, error.code, error.message, error.details)


def handle(exception: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: every refusal, ours or the framework's, in one shape; anything else is a 500."""
    if isinstance(exception, M3Error):
        return Response(envelope(exception), status=exception.status)
    if isinstance(exception, Http404):
        return Response(_envelope(404, "not_found", "There is nothing here.", {}), status=404)
    if isinstance(exception, exceptions.ValidationError):
        message = "The request body does not fit. Correct the fields named in details."
        return Response(_envelope(422, "invalid_argument", message, {"fields": exception.detail}), status=422)
    if isinstance(exception, exceptions.ParseError):
        return Response(
            _envelope(422, "invalid_json", f"The body is not JSON: {exception.detail}", {}), status=422
        )
    if isinstance(exception, exceptions.APIException):
        code = exception.get_codes()
        response = Response(
            _envelope(
                exception.status_code, code if isinstance(code, str) else "error", str(exception.detail), {}
            ),
            status=exception.status_code,
        )
        challenge = getattr(exception, "auth_header", None)
        if challenge:
            response["WWW-Authenticate"] = challenge
        return response
    return None


def _envelope(status: int, code: str, message: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """`error_code` stands in both places, because clients of different age look in either."""
    return {
        "error": {
            "type": _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error"),
            "message": message,
            "code": status,
            "error_code": code,
            "request_id": uuid.uuid4().hex,
            "details": {"error_code": code, **details},
        }
    }
