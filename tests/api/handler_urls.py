"""The views of `tests.api.handler_server`."""

from __future__ import annotations

import io
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from tests.api import handler_server as server


def where(_request: HttpRequest) -> HttpResponse:
    return JsonResponse(server.here())


def state(_request: HttpRequest) -> HttpResponse:
    threads: Any = settings.THREADS
    return JsonResponse({"made": threads.made, "signals": server.signals, "left": server.left})


def slow(request: HttpRequest) -> HttpResponse:
    """Uses the database, waits, and then still has its body and its database."""
    before = server.here()
    server.go_on.wait(60)
    server.left.append(f"{request.method} {len(request.body)} {server.here() == before}")
    return JsonResponse(before)


def go_on(_request: HttpRequest) -> HttpResponse:
    server.go_on.set()
    return HttpResponse()


def stop(_request: HttpRequest) -> HttpResponse:
    """Let views be slow again."""
    server.go_on.clear()
    server.left.clear()
    return HttpResponse()


def stream(_request: HttpRequest) -> StreamingHttpResponse:
    server.here()
    return StreamingHttpResponse(server.two_lines(), content_type="text/plain")


def file(_request: HttpRequest) -> FileResponse:
    return FileResponse(io.BytesIO(b"x" * 300_000), content_type="text/plain")


def broken(_request: HttpRequest) -> HttpResponse:
    server.here()
    raise ZeroDivisionError


async def asynchronous(_request: HttpRequest) -> HttpResponse:
    return JsonResponse(
        {"first": await sync_to_async(server.here)(), "second": await sync_to_async(server.here)()}
    )


def upload(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"digest": server.digest(request.body)})


views = [where, state, slow, go_on, stop, stream, file, broken, asynchronous, upload]
urlpatterns = [path(view.__name__, csrf_exempt(view)) for view in views]


def handler500(_request: HttpRequest) -> HttpResponse:
    """The product's own page names addresses that are not here."""
    return HttpResponse(status=500)
