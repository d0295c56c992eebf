"""Sessions that outlived their calls: whoever works on the run next ends them."""

from __future__ import annotations

import logging

from runs import db
from runs.binding import binding_of
from runs.errors import M3Error
from runs.lease import Lease
from runs.mcp_client import Binding, end_session
from runs.worker import session_rows
from runs.worker.session_rows import Leftover

log = logging.getLogger(__name__)


async def end_leftovers(lease: Lease) -> None:
    """End every session of the run whose call is over: the run was cancelled or timed out while nobody held it.

    Its server gets the protocol's cancellation. One that cannot be reached is given up; a keeper ends by itself.
    """
    for leftover in await db.read(session_rows.leftovers, lease):
        log.info("run %s: ending the session that its call left behind", lease.run_id)
        await end_session(_binding(leftover), leftover.live, token=lease.token)
        await db.write(session_rows.forget, lease, leftover.step_id)


def _binding(leftover: Leftover) -> Binding | None:
    try:
        return binding_of(leftover.server) if leftover.server is not None else None
    except M3Error:
        return None
