"""Hints to open pages: "look again", never the data itself (house style 5).

A hint is lost without harm: pages list everything on connect, on reconnect and on focus. Groups:
`inbox.<account>` for the list of pauses and counts, `runs.<account>` for the list of runs, `run.<id>` for one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Literal, TypedDict

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import connection, transaction

from runs import database, notices

log = logging.getLogger(__name__)

WAIT_AT_MOST: Final = 200
"""Hints that may wait to be sent; while a server is silent each takes seconds, and one more is dropped."""

SENT_WITHIN: Final = 5.0
"""Seconds in which a process has to hear what it says to itself."""

LISTENED_EVERY: Final = 1.0
"""Seconds between two looks whether hints get through. The channel layer pauses for as long whenever its connection
breaks, so that no break is missed."""

_loop: asyncio.AbstractEventLoop | None = None
_waiting = 0


class PauseHint(TypedDict):
    """A pause opened, changed or ended."""

    type: Literal["pause"]
    pause_id: str
    run_id: int
    status: str
    version: int
    pending_count: int


class RunHint(TypedDict):
    """A run's journal grew to `seq`."""

    type: Literal["run"]
    run_id: int
    status: str
    seq: int


Addressed = tuple[tuple[str, ...], PauseHint | RunHint]
"""A hint and the groups that it goes to."""


def inbox_group(account_id: int) -> str:
    return f"inbox.{account_id}"


def runs_group(account_id: int) -> str:
    return f"runs.{account_id}"


def run_group(run_id: int) -> str:
    return f"run.{run_id}"


def connect(loop: asyncio.AbstractEventLoop) -> None:
    """Name the loop that owns the sockets of this process; an in-memory layer works on that loop alone."""
    global _loop
    _loop = loop


def after_commit(groups: tuple[str, ...], hint: PauseHint | RunHint) -> None:
    """Send `hint` to `groups` once the current transaction has committed; a rollback sends nothing.

    All hints of a transaction go out together, and only the last one about the same run or pause.
    """
    if not database.current().announces:
        return
    sids, waiting = set(connection.savepoint_ids), list[Any](connection.run_on_commit)
    for known, hook, _ in waiting:
        batch = getattr(hook, "__self__", None)
        if isinstance(batch, _Batch) and known == sids:  # rolled back with the same savepoints
            batch.add(groups, hint)
            return
    batch = _Batch()
    batch.add(groups, hint)
    transaction.on_commit(batch.send, robust=True)


class _Batch:
    """Hints of one transaction."""

    def __init__(self) -> None:
        self._hints: dict[tuple[object, ...], Addressed] = {}

    def add(self, groups: tuple[str, ...], hint: PauseHint | RunHint) -> None:
        about = (*groups, hint["type"], hint["pause_id"] if hint["type"] == "pause" else hint["run_id"])
        self._hints.pop(about, None)  # the later one also comes later
        self._hints[about] = (groups, hint)

    def send(self) -> None:
        _send(list(self._hints.values()))


def bridged() -> bool:
    """Whether hints go from process to process through PostgreSQL, because there is no Redis to carry them."""
    return not carried() and notices.available()


async def relay() -> None:
    """Hand the hints of all processes to the sockets of this one, one after the other, until cancelled."""
    heard: asyncio.Queue[Addressed] = asyncio.Queue()

    def hear(payload: str) -> None:
        groups, hint = json.loads(payload)
        heard.put_nowait((tuple(groups), hint))

    async def hand_on() -> None:
        while True:
            await _group_send(*await heard.get())

    def look_again() -> None:
        layer: Any = get_channel_layer()
        for channel in {channel for group in layer.groups.values() for channel in group}:
            _start(layer.send(channel, {"type": "look.again"}))

    async with asyncio.TaskGroup() as both:
        both.create_task(hand_on())
        both.create_task(notices.listen({notices.HINTS: hear}, look_again))


def carried() -> bool:
    """Whether a server outside the process carries hints, which may be away for a while."""
    return not isinstance(get_channel_layer(), InMemoryChannelLayer)


async def watch() -> None:
    """Have every page of this process begin anew after hints did not get through for a while, until cancelled.

    While somebody listens here this process says something to itself. What it does not hear, pages did not hear either;
    and a broken connection is not trusted to have kept who listens to what: everything is subscribed anew.
    """
    layer: Any = get_channel_layer()
    ear, away = _Ear(layer), False
    while True:
        await asyncio.sleep(LISTENED_EVERY)
        if not layer.groups:
            continue  # a page that comes later counts everything by itself
        try:
            if await ear.hears() and not away:
                continue
        except Exception as error:
            if not away:
                log.warning(
                    "hints do not get through (%s); pages find changes on their next look", _why(error)
                )
            away = True
            continue
        log.warning("hints were lost; every page connects anew")
        ear.close()
        ear, away = _Ear(layer), False
        await _begin_anew(layer)


class _Ear:
    """A channel of this process to itself. Nothing that waits for the server is cancelled here: a connection that is
    cut short while it is made remains, and nobody would know that it lacks its subscriptions."""

    def __init__(self, layer: Any) -> None:
        self.layer, self.said = layer, 0
        self._heard = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    async def hears(self) -> bool:
        """Whether what is said now is heard. Raises what the layer raises if the server does not even take it."""
        if self._listening is None:
            self._name = await self.layer.new_channel()
            self._listening = asyncio.create_task(self._listen())
        self.said += 1
        self._heard.clear()
        await self.layer.send(self._name, {"type": "heard", "number": self.said})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SENT_WITHIN):
                await self._heard.wait()
        return self._heard.is_set()

    def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    async def _listen(self) -> None:
        while True:
            message = await self.layer.receive(self._name)
            if message.get("number") == self.said:
                self._heard.set()


async def _begin_anew(layer: Any) -> None:
    """Every page is told to connect anew, past the server, and the layer forgets all that it knew."""
    for queue in layer.channels.values():
        queue.put_nowait(layer.serialize({"type": "start.anew"}))
    try:
        await layer.flush()
    except Exception as error:
        log.info("the connections for hints were not closed in order (%s)", _why(error))


def _why(error: Exception) -> str:
    return str(error).strip() or type(error).__name__


_sending: set[asyncio.Task[None]] = set()


def _start(sending: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(sending)
    _sending.add(task)
    task.add_done_callback(_sending.discard)


def _send(hints: Sequence[Addressed]) -> None:
    if bridged():
        notices.send(notices.HINTS, *map(json.dumps, hints))
        return
    if _loop is not None and not _loop.is_closed():
        asyncio.run_coroutine_threadsafe(_group_sends(hints), _loop)
        return
    if not carried():
        return  # no socket lives in this process, and no other process can hear
    async_to_sync(_group_sends)(hints)


async def _group_sends(hints: Sequence[Addressed]) -> None:
    for groups, hint in hints:
        await _group_send(groups, hint)


async def _group_send(groups: tuple[str, ...], hint: PauseHint | RunHint) -> None:
    global _waiting
    if _waiting >= WAIT_AT_MOST:
        return
    layer: Any = get_channel_layer()
    _waiting += 1
    try:
        for group in groups:
            try:
                await layer.group_send(group, {"type": "hint", "hint": hint})
            except Exception as error:
                log.info("a hint to %s was not sent (%s)", group, _why(error))
    finally:
        _waiting -= 1
