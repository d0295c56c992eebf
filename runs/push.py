"""Hints to open pages: "look again", never the data itself (house style 5).

A hint is lost without harm: pages list everything on connect, on reconnect and on focus. Groups:
`inbox.<account>` for the list of pauses and counts, `runs.<account>` for the list of runs, `run.<id>` for one run.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from typing import Any, Literal, TypedDict

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import transaction

from runs import database, notices

log = logging.getLogger(__name__)

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
    layer: Any = get_channel_layer()

    def hand_on(payload: str) -> None:
        groups, hint = json.loads(payload)
        _start(_group_send(tuple(groups), hint))

    def look_again() -> None:
        listening = {channel for group in layer.groups.values() for channel in group}
        for channel in listening:
            _start(layer.send(channel, {"type": "look.again"}))

    await notices.listen({notices.HINTS: hand_on}, look_again)


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
    for group in groups:
        try:
            await layer.group_send(group, {"type": "hint", "hint": hint})
        except Exception:
            log.warning(
                "a hint to %s was not sent; pages will find the change on their next look",
                group,
                exc_info=True,
            )
