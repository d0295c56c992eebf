"""A worker that is told to stop lets its calls come to their end, for a while, and gives everything back at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.engines.conftest import Fleets
from tests.engines.fleet import Fleet
from tests.engines.office import Office

LONG = "300"
"""Seconds of a lease that no test waits out, and of a sweep that finds nothing in time."""


@pytest.fixture(scope="module")
def fleet(prepared: Fleets) -> Iterator[Fleet]:
    fleet = prepared("procrastinate", "postgres", M3_LEASE_SECONDS=LONG, M3_SWEEP_SECONDS=LONG)
    yield fleet
    fleet.stop()


@pytest.fixture(scope="module")
def office(fleet: Fleet) -> Office:
    return fleet.office()


def at_work(fleet: Fleet, office: Office, tag: str) -> int:
    run = int(office.ask("start", agent="hauls", metadata=fleet.haul(tag)))
    fleet.eventually(lambda: fleet.at_work(tag), "the call to be at work")
    return run


def test_a_call_that_ends_in_time_is_journaled_and_the_next_worker_goes_on(
    fleet: Fleet, office: Office
) -> None:
    first = fleet.worker("--stop-seconds", "60")
    run = at_work(fleet, office, "in time")
    untouched = office.ask("start", agent="asks")
    fleet.waits(untouched, "question")

    first.send(signal.SIGTERM)
    fleet.let_go("in time")

    assert first.ended() == 0, first.text()
    results = "select count(*) from runs_step where run_id = %s and kind = 'call' and result is not null"
    assert fleet.one(results, run) == 1
    assert fleet.owner(run) is None
    second = fleet.worker()
    assert fleet.finished(run) == "done"
    assert fleet.at_work("in time") == 1
    second.kill()


def test_a_call_that_takes_longer_is_cut_and_its_run_free_at_once(fleet: Fleet, office: Office) -> None:
    first = fleet.worker("--stop-seconds", "0.2")
    run = at_work(fleet, office, "cut")
    second = fleet.worker()

    first.send(signal.SIGTERM)

    assert first.ended() == 0, first.text()
    fleet.waits(run, "outcome")  # in the second worker, long before any lease has run out
    fleet.let_go("cut")
    second.kill()


def test_a_second_signal_does_not_wait(fleet: Fleet, office: Office) -> None:
    worker = fleet.worker("--stop-seconds", LONG)
    run = at_work(fleet, office, "impatient")

    worker.send(signal.SIGTERM)
    fleet.eventually(lambda: "takes nothing new" in worker.text(), "the worker to say that it stops")
    worker.send(signal.SIGINT)

    assert worker.ended() == 0, worker.text()
    _, stops, again, ended = (line for line in worker.text().splitlines() if line.startswith("Worker "))
    assert stops.endswith(f"calls may go on for {LONG} seconds.")
    assert again.endswith("is told again: what is under way is cut.")
    assert ended.endswith("has ended. Its runs are free for others.")
    assert fleet.owner(run) is None
    fleet.let_go("impatient")
