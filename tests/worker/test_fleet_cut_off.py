"""A host that only lost its way to the database: for a moment nothing is lost, and after more than that it finds that
others went on without it and does nothing twice."""

from __future__ import annotations

import signal
from collections.abc import Callable

from runs import db
from runs.models import Round
from tests.mcp.test_child_process import is_running
from tests.worker.conftest import results
from tests.worker.fleet import (  # noqa: F401  (fixtures)
    SOON,
    Fleet,
    a_bound,
    a_fleet,
    an_old_server,
    on_a_server,
)

pytestmark = on_a_server
Bound = Callable[[float], None]


async def test_a_session_outlives_a_break_of_the_link_to_the_database(fleet: Fleet) -> None:
    fleet.start("a", cuttable=True)
    run, round_ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.links["a"].cut()
    await fleet.let_go(run)
    await fleet.desk.accept(round_, name="Ada")
    fleet.links["a"].heal()
    assert (await fleet.desk.finished(run)).output == "done"
    assert (fleet.received("tools/call"), fleet.received(None)) == (1, 1)
    assert fleet.received("notifications/cancelled") == 0
    await fleet.ended(keeper)


async def test_a_host_that_was_cut_off_for_too_long_ends_its_session_when_it_is_back(
    fleet: Fleet, bound: Bound
) -> None:
    bound(SOON)
    fleet.start("a", cuttable=True)
    run, round_ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    fleet.links["a"].cut()
    fleet.start("b")
    assert (await fleet.desk.finished(run)).error_code == "managed_input_recovery_unavailable"
    assert is_running(keeper)
    fleet.links["a"].heal()
    await fleet.ended(keeper)
    assert (fleet.received("tools/call"), fleet.answers()) == (1, 0)
    lost = await db.read(Round.objects.get, pk=round_.pk)
    assert (lost.failure_code, lost.delivery_attempts) == ("recovery_unavailable", 0)
    fleet.kill("b")
    await fleet.looked_at_everything()  # by the host that was away


async def test_a_worker_that_stood_still_for_too_long_hands_over_nothing(
    fleet: Fleet, bound: Bound, old_server: Callable[..., None]
) -> None:
    """Its session is open and waits for the very answer that another host has used meanwhile."""
    bound(SOON)
    old_server(readOnlyHint=True)
    still = fleet.start("a")
    run, round_ = await fleet.asked()
    keeper = await fleet.keeper_of(run)
    still.process.send_signal(signal.SIGSTOP)
    fleet.start("b")
    await fleet.desk.eventually(
        lambda: run.events.filter(type="tool_call.repeated").exists(), "the other host to go on", run
    )
    await fleet.desk.accept(round_, name="Ada")
    assert (await fleet.desk.finished(run)).output == "done"
    (reply,) = (await db.read(results, run))["steps.0"]["result"]["replies"]
    assert reply["content"] == {"name": "Ada"}
    still.process.send_signal(signal.SIGCONT)
    await fleet.ended(keeper)
    assert (fleet.received("tools/call"), fleet.answers()) == (2, 1), "repeated as permitted, answered once"
