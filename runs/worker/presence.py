"""What a worker does for its host and about the others: signs of life, runs of hosts that are gone, sessions that were
left here while this host was away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.db import DatabaseError

from runs import db, hosts
from runs.worker.leftovers import end_left_here

log = logging.getLogger(__name__)


async def attend() -> None:
    """Look after it all until cancelled; nothing to do where one process has everything.

    Ending sessions may take long, and a sign of life must not wait for it.
    """
    if hosts.shared():
        await asyncio.gather(_every_beat(_live), _every_beat(end_left_here))


async def _live() -> None:
    await db.write(hosts.beat)
    freed = await db.write(hosts.let_go)
    if freed:
        log.warning("%s runs go on without the host that kept their sessions; it is gone", freed)
    await db.write(hosts.forget_old)


async def _every_beat(look: Callable[[], Awaitable[None]]) -> None:
    """Nothing that goes wrong ends it: a database server may be away for a while."""
    while True:
        try:
            await look()
        except DatabaseError as error:
            log.warning("the host's sign of life has to wait (%s)", str(error).strip())
        except Exception:
            log.exception("the look after the hosts went wrong")
        await asyncio.sleep(hosts.gone_after().total_seconds() / hosts.BEATS)
