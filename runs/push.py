"""Hints to open pages: "look again", never the data itself (house style 5).

A hint is lost without harm: pages list everything on connect, on reconnect and on focus. Groups:
`inbox.<account>` for the list of pauses and counts, `runs.<account>` for the list of runs, `run.<id>` for one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Coroutine
from typing import Any, Final, Literal, TypedDict

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import transaction

from runs import database, notices

log = logging.getLogger(__name__)

SENT_WITHIN: Final = 5.0
"""Seconds after which a hint that could not be sent is dropped: kept, it would only hold up those after it."""

LISTENED_EVERY: Final = 1.0
"""Seconds between two looks whether hints get through. The channel layer pauses for as long whenever its connection
breaks, so that no break is missed."""

_loop: asyncio.AbstractEventLoop | None = None


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
    """Send `hint` to `groups` once the current transaction has committed; a rollback sends nothing."""
    if database.current().announces:
        transaction.on_commit(lambda: _send(groups, hint), robust=True)


def bridged() -> bool:
    """Whether hints go from process to process through PostgreSQL, because there is no Redis to carry them."""
    return isinstance(get_channel_layer(), InMemoryChannelLayer) and notices.available()


async def relay() -> None:
    """Hand the hints of all processes to the sockets of this one, until cancelled."""

    def hand_on(payload: str) -> None:
        groups, hint = json.loads(payload)
        _start(_group_send(tuple(groups), hint))

    await notices.listen({notices.HINTS: hand_on}, _look_again)


def carried() -> bool:
    """Whether a server outside the process carries hints, which may be away for a while."""
    return not isinstance(get_channel_layer(), InMemoryChannelLayer)


async def watch() -> None:
    """Have every page of this process look again after hints did not get through for a while, until cancelled.

    While somebody listens here this process says something to itself; what it does not hear, pages did not hear either.
    """
    layer: Any = get_channel_layer()
    heard, said, itself = True, 0, ""
    while True:
        await asyncio.sleep(LISTENED_EVERY)
        if not layer.groups:
            continue  # a page that comes later counts everything by itself
        before, said = heard, said + 1
        try:
            async with asyncio.timeout(SENT_WITHIN):
                itself = itself or await layer.new_channel()
                await layer.send(itself, {"type": "heard", "number": said})
                while (await layer.receive(itself))["number"] != said:
                    pass  # it was said before the break
            heard = True
        except Exception as error:
            heard = False
            if before:
                log.warning(
                    "hints do not get through (%s); pages find changes on their next look", _why(error)
                )
        if heard and not before:
            log.warning("hints get through again; every page looks again")
            _look_again()


def _look_again() -> None:
    """Hints were lost on their way to this process."""
    layer: Any = get_channel_layer()
    for channel in {channel for group in layer.groups.values() for channel in group}:
        _start(_tell_to_look(layer, channel))


async def _tell_to_look(layer: Any, channel: str) -> None:
    with contextlib.suppress(Exception):  # lost again; the next look after this break comes
        await layer.send(channel, {"type": "look.again"})


def _why(error: Exception) -> str:
    return str(error).strip() or type(error).__name__


_sending: set[asyncio.Task[None]] = set()


def _start(sending: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(sending)
    _sending.add(task)
    task.add_done_callback(_sending.discard)


def _send(groups: tuple[str, ...], hint: PauseHint | RunHint) -> None:
    if bridged():
        notices.send(notices.HINTS, json.dumps([groups, hint]))
        return
    if _loop is not None and not _loop.is_closed():
        asyncio.run_coroutine_threadsafe(_group_send(groups, hint), _loop)
        return
    if isinstance(get_channel_layer(), InMemoryChannelLayer):
        return  # no socket lives in this process, and no other process can hear
    async_to_sync(_group_send)(groups, hint)


async def _group_send(groups: tuple[str, ...], hint: PauseHint | RunHint) -> None:
    layer: Any = get_channel_layer()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SENT_WITHIN):
            for group in groups:
                try:
                    await layer.group_send(group, {"type": "hint", "hint": hint})
                except Exception as error:
                    log.info("a hint to %s was not sent (%s)", group, _why(error))
