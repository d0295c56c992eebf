"""One of two machines dies with all that it had under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fleet.machines import HOST_GONE, Fleet
from tests.mcp.bindings import wait_for

pytestmark = pytest.mark.timeout(600)  # the machines start within the first test


def test_the_other_machine_goes_on_with_every_run_of_one_that_is_switched_off(
    fleet: Fleet, tmp_path: Path
) -> None:
    until = tmp_path / "until"
    with fleet.b.worker_frozen():
        hauls = fleet.start(fleet.a, "hauls", until=str(until))
        paused = [
            fleet.start(fleet.a, "asks"),
            fleet.start(fleet.a, "labels", mode="approval"),
            fleet.start(fleet.a, "books"),
        ]
        pauses = [started.pause(fleet.a) for started in paused]
        hauls.is_under_way()

        fleet.a.power_off()

    for pause in pauses:
        assert fleet.answer(fleet.b, pause).status_code == 200
    unknown = hauls.pause(fleet.b, "outcome")
    until.touch()
    assert fleet.answer(fleet.b, unknown).status_code == 200
    assert [started.ended() for started in (hauls, *paused)] == [("completed", None)] * 4
    assert fleet.effects("haul began", hauls.tag) == 2, "once, and once more by permission"
    assert [fleet.effects("label", started.tag) for started in paused[:2]] == [1, 1]
    assert fleet.effects("book", paused[2].tag) == 1


def test_a_run_whose_session_is_kept_on_a_dead_machine_waits_for_it_and_then_says_what_was_lost(
    fleet: Fleet,
) -> None:
    with fleet.b.worker_frozen():
        started = fleet.start(fleet.a, "books of old")
        pause = started.pause(fleet.a)

    fleet.a.kill()  # the keeper of the session lives on, where nobody can reach it
    assert fleet.answer(fleet.b, pause).status_code == 200

    assert started.ended() == ("failed", "managed_input_recovery_unavailable")
    assert fleet.effects("book", started.tag) == 0
    sql = "select turn.finished_at - host.seen_at from runs_turn turn, runs_workerhost host"
    ((waited,),) = fleet.query(
        f"{sql} where turn.run_id = %s and host.id = %s", started.run, host_of(fleet, "a")
    )
    assert waited.total_seconds() >= HOST_GONE
    ((failure,),) = fleet.query("select failure_code from runs_round where id = %s", pause["id"])
    assert failure == "recovery_unavailable"


def test_another_worker_of_the_same_machine_goes_on_with_the_very_session(fleet: Fleet) -> None:
    with fleet.b.worker_frozen():
        started = fleet.start(fleet.a, "books of old")
        pause = started.pause(fleet.a)
    driver = fleet.a.processes.pop("worker")
    fleet.a.start()
    fleet.a.ready()

    driver.kill()
    driver.wait()
    assert fleet.answer(fleet.b, pause).status_code == 200

    assert started.ended() == ("completed", None)
    assert fleet.effects("book", started.tag) == 1
    ((asked,),) = fleet.query("select count(*) from runs_round where run_id = %s", started.run)
    assert asked == 1


def host_of(fleet: Fleet, name: str) -> Any:
    """The identity under which workers of a machine give signs of life."""
    mark = ({"a": fleet.a, "b": fleet.b}[name].folder / "keepers" / "host").read_text()
    known = wait_for(
        lambda: fleet.query("select id from runs_workerhost where id like %s", f"{mark} %"), "its host"
    )
    return known[0][0]
