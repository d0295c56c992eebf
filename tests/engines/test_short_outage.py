"""PostgreSQL is away for less than a lease while a call is under way, and for longer than a write waits by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.fleet import Fleet
from tests.engines.own_postgres import OwnPostgres


@pytest.fixture
def fleet(tmp_path: Path, server: OwnPostgres, playground: str, effects: Path) -> Iterator[Fleet]:
    # No sweep that could find the run again: whoever lets go of it has lost it for the test.
    settings = {"M3_LEASE_SECONDS": "90", "M3_SWEEP_SECONDS": "100000"}
    fleet = Fleet(tmp_path, "procrastinate", server.url, playground, effects, settings)
    yield fleet
    fleet.stop()


def test_a_call_that_finishes_while_the_database_is_away_is_stored_when_it_is_back(
    fleet: Fleet, server: OwnPostgres
) -> None:
    worker, office = fleet.worker(), fleet.office()
    office.ask("people", playground=fleet.playground)
    run = int(office.ask("start", agent="hauls", metadata=fleet.haul("it")))
    fleet.eventually(lambda: fleet.at_work("it"), "the call to be at work")

    server.stop()
    fleet.let_go("it")
    kept = "what a server returned is kept in hand"
    fleet.eventually(lambda: kept in worker.text(), "the worker to have failed to store it")
    server.start()

    assert fleet.finished(run) == "done"
    assert fleet.at_work("it") == 1
    assert fleet.one("select count(*) from runs_round where run_id = %s", run) == 0
    told = "select count(*) from runs_event where run_id = %s and type = %s"
    assert [fleet.one(told, run, f"tool_call.{what}") for what in ("sent", "result")] == [1, 1]
