"""Sending deliveries, beside the runs and never in their way.

One loop takes what is due and one task sends each: many endpoints at once, of each endpoint one delivery at a time. So
an endpoint that does not answer holds up nobody but itself, for as long as its time lasts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import httpx2
from django.conf import settings
from django.db import DatabaseError

from runs import db
from runs.errors import EgressRefused
from runs.mcp_client.http import BodyEncodedError, GuardedTransport, Seen
from runs.webhooks import deliveries, outbox
from runs.webhooks.deliveries import ATTEMPT_SECONDS, MAX_ANSWER, Answer, Attempt
from runs.webhooks.words import signed_headers

log = logging.getLogger(__name__)

AT_ONCE: Final = 50
"""Deliveries under way at the same time, each to another endpoint."""

_READ: Final = 4 * MAX_ANSWER
"""Bytes of an answer that are read, enough for as many characters as are kept."""


class Sender:
    """Sends what is due in the current database until it is cancelled. What is under way then is sent again later."""

    def __init__(self) -> None:
        self._under_way: dict[int, asyncio.Task[None]] = {}
        """By endpoint."""
        self._look = asyncio.Event()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        outbox.wakes(_from_any_thread(loop, self._look))
        try:
            while True:
                self._look.clear()
                await self._send_due()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(settings.M3.sweep_seconds):
                        await self._look.wait()
        finally:
            outbox.wakes(None)
            await self._stop()

    async def _send_due(self) -> None:
        """A database that is gone for a while ends nothing; the next look finds the same."""
        try:
            while (free := AT_ONCE - len(self._under_way)) > 0:
                busy = tuple(self._under_way)
                if not await db.read(deliveries.anything_due, busy):
                    return
                taken = await db.write(deliveries.take, busy, free)
                if not taken:
                    return
                for attempt in taken:
                    self._start(attempt)
        except DatabaseError as error:
            log.warning("webhooks cannot be looked for (%s); trying again", str(error).strip())

    def _start(self, attempt: Attempt) -> None:
        task = asyncio.create_task(self._deliver(attempt))
        self._under_way[attempt.endpoint_id] = task
        task.add_done_callback(lambda _: self._done(attempt.endpoint_id))

    def _done(self, endpoint_id: int) -> None:
        self._under_way.pop(endpoint_id, None)
        self._look.set()  # there may be more for this endpoint

    async def _deliver(self, attempt: Attempt) -> None:
        try:
            answer = await send(attempt)
            pause = await db.write(deliveries.finish, attempt, answer)
        except Exception:
            log.exception("a webhook (%s) could not be sent; it is tried again later", attempt.event_id)
            return
        if pause is not None:
            asyncio.get_running_loop().call_later(pause.total_seconds(), self._look.set)

    async def _stop(self) -> None:
        running = list(self._under_way.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def send(attempt: Attempt) -> Answer:
    """Make one attempt; every way in which it can fail is an answer too.

    The transport resolves the name itself and connects to an address that it has checked; redirects are not followed,
    because they would lead past that check and past what the account has registered.
    """
    body = attempt.body.encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "M3-Web-Webhooks",
        "Accept-Encoding": "identity",
        **signed_headers(attempt.secret, attempt.event_id, int(time.time()), body),
    }
    seen = Seen()
    transport = GuardedTransport(seen, allow_private=settings.M3.allow_private_urls, max_bytes=2**30)
    answer = Answer(ok=False, text=f"No answer within {ATTEMPT_SECONDS:g} seconds.")
    try:
        async with (
            asyncio.timeout(ATTEMPT_SECONDS),
            httpx2.AsyncClient(transport=transport, trust_env=False, timeout=ATTEMPT_SECONDS) as client,
            client.stream("POST", attempt.url, content=body, headers=headers) as response,
        ):
            answer = Answer(ok=response.is_success, status=response.status_code)
            answer = replace(answer, text=await _beginning(response))
    except (TimeoutError, httpx2.TimeoutException):
        pass  # of a slow body the status is there
    except EgressRefused as refused:
        return Answer(ok=False, text=refused.message)
    except BodyEncodedError:  # of a body that nobody needs; the status is what counts
        return Answer(ok=seen.status is None, status=seen.status, text="(a compressed answer)")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return Answer(ok=False, text=f"{type(error).__name__}: {error}")
    return answer


async def _beginning(response: httpx2.Response) -> str:
    """As much of an answer as is kept; the rest is not read. A body that breaks off is no reason to send again."""
    found = b""
    with contextlib.suppress(httpx2.TransportError):
        async for chunk in response.aiter_raw():
            found += chunk
            if len(found) >= _READ:
                break
    return found[:_READ].decode("utf-8", "replace")


def _from_any_thread(loop: asyncio.AbstractEventLoop, look: asyncio.Event) -> Callable[[], None]:
    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closing; the next start looks
            loop.call_soon_threadsafe(look.set)

    return wake
