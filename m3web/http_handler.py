"""Django's handler of HTTP requests, on threads that stay (`m3web.http_threads`).

As with Django's own, all synchronous code of a request runs in one thread, in order, from the signal of its start to
that of its end; so connections to the database are looked after as anywhere. Two things differ: the thread outlives
the request, and a response that is streamed holds none while it is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from m3web.http_threads import Lane, Threads

_lane: ContextVar[Lane] = ContextVar("m3_http_lane")


class LastingThreads(ASGIHandler):
    """The handler; one per process."""

    def __init__(self, threads: Threads | None = None) -> None:
        self._threads = threads or Threads()
        super().__init__()

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            raise ValueError(f"HTTP only, not {scope['type']}")
        lane = Lane(self._threads)
        await lane.enter()
        token, finished = _lane.set(lane), False
        try:
            async with ThreadSensitiveContext(executor=lane):
                await self.handle(scope, receive, send)
            finished = True
        finally:
            _lane.reset(token)
            lane.end(idle=finished)

    def load_middleware(self, is_async: bool = False) -> None:
        """Every middleware in its synchronous form, so that a request goes to its thread once and not for each."""
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = await sync_to_async(self.get_response)(request)
        return response

    async def send_response(self, response: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """A stream may take hours, and what it needs of the database it asks for itself."""
        if not (response.streaming and response.is_async):
            await super().send_response(response, send)
            return
        lane = _lane.get()
        await lane.leave()
        try:
            await super().send_response(response, send)
        finally:
            await lane.enter_again()


def http_application() -> LastingThreads:
    """The application for everything that is no WebSocket."""
    django.setup(set_prefix=False)
    return LastingThreads()
