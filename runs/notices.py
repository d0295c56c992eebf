"""Word from process to process through their PostgreSQL (LISTEN and NOTIFY), for what needs no keeping.

A notice that is lost does no harm: whoever listens also looks by itself. After a break the listener is told that it may
have missed something.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connection

from runs import database, write_behind
from runs.prepared import cached
from runs.statements import Given, Statement

log = logging.getLogger(__name__)

HINTS: Final = "m3_hints"
"""What open pages should look at again; the payload is JSON (`runs.push`)."""

WAKES: Final = "m3_wakes"
"""A run whose wake another worker than its driver was told of; the payload is its id."""

WEBHOOKS: Final = "m3_webhooks"
"""There is something to send; no payload."""

PAUSE: Final = 0.5
"""Seconds between two attempts to connect."""

_NOTIFY: Final = "SELECT pg_notify(%s, payload) FROM unnest(%s::text[]) AS payload"


def send(channel: str, *payloads: str) -> None:
    """Tell whoever listens, at once if the thread is in no transaction, else when it commits. Blocks.

    Does nothing where no server could carry it, nor, outside of a transaction, where the connection broke.
    """
    if connection.vendor != "postgresql":
        return
    notify = cached(_NOTIFY, lambda: Statement(_NOTIFY, ()))
    try:
        write_behind.carry_out([Given(notify, [channel, list(payloads)], rows=False)])
    except (OperationalError, InterfaceError) as error:
        if connection.in_atomic_block:
            raise
        log.info("other processes were not told (%s); they find it on their next look", str(error).strip())


def available() -> bool:
    """Whether the current database carries notices."""
    return database.current().on_server


async def listen(handlers: Mapping[str, Callable[[str], None]], missed: Callable[[], None]) -> None:
    """Call the handler of a channel with each payload, on this loop, until cancelled.

    `missed` is called whenever listening begins again after a break. Nothing that goes wrong ends the listening.
    """
    import psycopg  # not installed everywhere; without it the settings refuse the URL of a PostgreSQL
    from psycopg import sql

    before = False
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(**_parameters(), autocommit=True) as line:
                for channel in handlers:
                    await line.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                if before:
                    missed()
                before = True
                async for notice in line.notifies():
                    _handle(handlers[notice.channel], notice.payload)
        except (psycopg.Error, OSError) as error:
            log.info("no word from other processes (%s); trying again", str(error).strip())
        await asyncio.sleep(PAUSE)


def _handle(handler: Callable[[str], None], payload: str) -> None:
    try:
        handler(payload)
    except Exception:
        log.exception("a notice could not be read")


def _parameters() -> dict[str, Any]:
    """How Django connects to the same database, without what is meant for its own cursors."""
    parameters = connection.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in ("cursor_factory", "context")}
