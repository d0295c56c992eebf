"""Errors of our own become pages here, once, and oversized bodies are refused before anything reads them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from m3web.api.errors import envelope, headers_of
from runs import races
from runs.errors import DatabaseAway, M3Error, TryAgain

logger = logging.getLogger(__name__)


class PayloadTooLarge(M3Error):
    """The request body is larger than this installation accepts."""

    code = "payload_too_large"
    status = 413


class LengthRequired(M3Error):
    """The request body does not say how long it is."""

    code = "length_required"
    status = 411


def wants_json(request: HttpRequest) -> bool:
    return request.path.startswith("/api/")


def error_response(request: HttpRequest, error: M3Error) -> HttpResponse:
    """The one JSON shape for the API, a page (or, for htmx, a notice) for a browser."""
    if wants_json(request):
        return JsonResponse(envelope(error), status=error.status, headers=headers_of(error))
    template = "errors/notice.html" if getattr(request, "htmx", False) else "errors/error.html"
    # Whose page it is would have to be looked up; without a database it is nobody's.
    shown_to = None if isinstance(error, DatabaseAway) else request
    response = HttpResponse(render_to_string(template, {"error": error}, shown_to), status=error.status)
    for name, value in headers_of(error).items():
        response[name] = value
    return response


class BoundedBodyMiddleware:
    """Refuses a body that is longer than the limit, or of unknown length, before a view reads it into memory.

    Under `manage.py up` every body has a length and none is stored beyond the limit (`m3web.web_server`). Another
    server may pass on a chunked body as it comes; Django's own limit does not see that one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        length = str(request.META.get("CONTENT_LENGTH") or "")
        refusal = _refusal(length, "HTTP_TRANSFER_ENCODING" in request.META)
        return error_response(request, refusal) if refusal else self.get_response(request)


def _refusal(length: str, chunked: bool) -> M3Error | None:
    """Why a body of this announced length (text; empty if none is announced) cannot be taken."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if length.isascii() and length.isdigit():
        if len(length) > 18 or int(length) > limit:
            return PayloadTooLarge(
                f"The request is larger than {limit:,} bytes. Send less; nothing was stored."
            )
        return None
    if length or chunked:
        return LengthRequired("The request does not say how long it is. Send it with a Content-Length.")
    return None


class ErrorPageMiddleware:
    """Turns an `M3Error` that a view raised into a response with its status and its sentence."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, M3Error):
            return error_response(request, exception)
        if races.refused_for_now(exception):
            logger.warning("a page's request lost a race: %s", exception)
            return error_response(request, TryAgain())
        if races.away(exception):
            logger.warning("a page's request had no database: %s", str(exception).strip())
            return error_response(request, DatabaseAway())
        if isinstance(exception, RequestDataTooBig):
            return error_response(
                request, PayloadTooLarge("The request is too large. Send less; nothing was stored.")
            )
        return None
