"""Sessions that outlived their calls: whoever works on the run next ends them."""

from __future__ import annotations

import logging

from runs import db, hosts
from runs.binding import binding_of
from runs.errors import M3Error
from runs.lease import Lease
from runs.mcp_client import Binding, LiveSession, end_session
from runs.worker import session_rows
from runs.worker.session_rows import Leftover

log = logging.getLogger(__name__)


async def end_leftovers(lease: Lease) -> None:
    """End every session of the run whose call is over: the run was cancelled or timed out while nobody held it.

    Its server gets the protocol's cancellation. One that cannot be reached is given up, or left to its own host.
    """
    for leftover in await db.read(session_rows.leftovers, lease):
        log.info("run %s: ending the session that its call left behind", lease.run_id)
        if leftover.within_reach:
            await end_session(_binding(leftover), leftover.live, token=lease.token)
        await db.write(session_rows.forget, lease, leftover.step_id)


async def end_left_here() -> None:
    """End the sessions of this host whose runs went on elsewhere while it was away."""
    for left in await db.read(hosts.left_here):
        log.info("ending the session at %s; its run went on without this host", left.keeper)
        session = LiveSession(negotiated={}, operation_id=left.operation_id, keeper=left.keeper)
        await end_session(None, session, token=left.token)
        await db.write(left.delete)


def _binding(leftover: Leftover) -> Binding | None:
    try:
        return binding_of(leftover.server) if leftover.server is not None else None
    except M3Error:
        return None
