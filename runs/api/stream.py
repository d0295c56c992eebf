"""A run as it happens: server-sent events over HTTP (m8tes-http 6).

A reader is a coroutine that waits. It holds no thread and no connection of the database while it does, and a hint that
is lost costs it a few seconds, because the events table is the truth and is looked at anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
import time
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Final, Self

from channels.layers import get_channel_layer
from django.db.models import Q
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from runs import access, push, turns
from runs.access import Actor
from runs.api import frames
from runs.api.base import ActorView, run_of
from runs.api.frames import KEEPALIVE, Frame, Framer, line
from runs.api.looking import Look, State, look, may_read
from runs.errors import StateConflict
from runs.models import Event, Round, Run
from runs.run_states import TurnStatus

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
"""Without the charset clients read Latin-1 (m8tes-http 8.5)."""

KEEPALIVE_SECONDS: Final = 15.0
"""How long a stream is silent at most (m8tes-http 1.8)."""

LOOK_SECONDS: Final = 5.0
"""How often a reader looks without having been told to."""

RIGHT_SECONDS: Final = 5.0
"""How long a reader is believed to be one who may read; then it is looked up, and before every keepalive."""

REJOIN: Final = dt.timedelta(seconds=30)
"""How long after a decision a run that has ended since can still be joined: whoever decides joins again, and a quick
run would be over before they come."""


class RunNotActive(StateConflict):
    """The run is over; there is nothing to follow (m8tes-http 3)."""

    code = "run_not_active"


class AnyAccept(BaseContentNegotiation):
    """Whatever the client says it accepts, it gets events, and JSON where it is refused."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class RunStream(ActorView):
    """Join a run that is under way."""

    http_method_names = ["get", "options"]
    content_negotiation_class = AnyAccept

    def get(self, request: Request, run_id: int) -> HttpResponseBase:
        """Everything of the run from its start, then what happens, as server-sent events.

        Raises NotFound, and RunNotActive once the run has ended.
        """
        run = run_of(self.actor, request, run_id)
        if run.status == TurnStatus.FINISHED and not _just_decided(run):
            raise RunNotActive(
                f"Run {run.pk} has ended. Read it, and its events, instead.", details={"outcome": run.outcome}
            )
        return stream_response(self.actor, run, whole=True)


def stream_response(actor: Actor, run: Run, *, whole: bool = False) -> StreamingHttpResponse:
    """The events of a run until it ends or waits for a decision, as a response that `actor` may read.

    It begins with the turn that is at work, or `whole` with the run's first one. Once the actor would not be let in any
    more it just ends: no frame says so, and without one a client takes the end for an interruption, joins again, and
    is told by the refusal. Raises NotFound.
    """
    access.get(actor, Run.objects.all(), pk=run.pk)
    return StreamingHttpResponse(
        _lines(actor, run.pk, 0 if whole else _before_turn(run), replays=whole),
        content_type=CONTENT_TYPE,
        headers={"X-Run-Id": str(run.pk), "X-Accel-Buffering": "no", "Cache-Control": "no-store"},
    )


def _just_decided(run: Run) -> bool:
    """Whether somebody ended a pause of the last turn by an answer a moment ago, and the turn has ended since."""
    answered = Q(response_validated_at__gte=timezone.now() - REJOIN) & ~Q(outcome="cancelled")
    return Round.objects.filter(answered, turn=run.turns.order_by("-index").first()).exists()


def _before_turn(run: Run) -> int:
    """The number of the event before the one that opened the present turn."""
    turn = turns.current(run) or run.turns.order_by("-index").first()
    first = Event.objects.filter(run=run, turn=turn).order_by("seq").values_list("seq", flat=True).first()
    return (first or 1) - 1


async def _lines(actor: Actor, run_id: int, after: int, *, replays: bool) -> AsyncIterator[bytes]:
    """Frames as they are sent, and comments where there are none for long."""
    yield line(frames.metadata(run_id))
    framer, replaying, right = Framer(run_id), replays, _Right(actor)
    async with _Ear(run_id) as ear:
        spoke = time.monotonic()
        while True:
            silent = time.monotonic() >= spoke + KEEPALIVE_SECONDS
            if not await right.holds(now=silent):
                return
            if silent:
                yield KEEPALIVE
                spoke = time.monotonic()
            seen = await look(run_id, after, framer.children)
            for frame in _of(seen, framer):
                yield line(frame)
                spoke = time.monotonic()
            after = seen.happenings[-1].seq if seen.happenings else after
            if seen.state is State.MORE:
                continue
            if seen.state is State.OVER:
                return
            if replaying:
                replaying = False
                yield line(frames.replay_complete())
            if seen.state is State.WAITING:
                for frame in frames.awaiting(seen.waiting):
                    yield line(frame)
                return
            await ear.hears(min(LOOK_SECONDS, spoke + KEEPALIVE_SECONDS - time.monotonic()))


def _of(seen: Look, framer: Framer) -> Iterator[Frame]:
    for call in seen.ended:
        yield from framer.child_ended(call)
    for happening in seen.happenings:
        yield from framer.frames(happening, last_turn=seen.last_turn)


class _Right:
    """Whether a reader, who might read when the stream began, still may: found out now and then, not for each event."""

    def __init__(self, actor: Actor) -> None:
        self._of = actor.user.pk, actor.account.pk
        self._known = time.monotonic()

    async def holds(self, *, now: bool) -> bool:
        """`now`: look it up however little time has passed."""
        asked = time.monotonic()
        if not now and asked < self._known + RIGHT_SECONDS:
            return True
        self._known = asked
        return await may_read(*self._of)


class _Ear:
    """Listens for hints about one run. Without a channel layer that works it hears nothing; the reader looks anyway."""

    def __init__(self, run_id: int) -> None:
        self._group = push.run_group(run_id)
        self._layer: Any = get_channel_layer()
        self._heard = asyncio.Event()
        self._channel: str | None = None
        self._task: asyncio.Task[None] | None = None

    async def hears(self, seconds: float) -> None:
        """Wait for a hint, at most that long. However many came since the last time count as one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        self._heard.clear()

    async def __aenter__(self) -> Self:
        try:
            self._channel = await self._layer.new_channel()
            await self._layer.group_add(self._group, self._channel)
        except Exception:
            log.warning("no hints for a stream of %s; it looks by itself", self._group, exc_info=True)
            return self
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            with contextlib.suppress(Exception):
                await self._layer.group_discard(self._group, self._channel)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            await self._layer.receive(self._channel)
            self._heard.set()
