"""A worker that dies or hangs takes nothing along: others go on with its runs, and it writes nothing any more."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.engines.conftest import Fleets
from tests.engines.fleet import Fleet, Process
from tests.engines.office import Office

LEASE = "3"


@dataclass
class Stage:
    """An installation with a worker that survives each test."""

    fleet: Fleet
    office: Office
    survivor: Process

    def at_work_elsewhere(self, tag: str) -> tuple[int, Process]:
        """A run whose call is under way in another worker, and that worker."""
        self.survivor.send(signal.SIGSTOP)
        victim = self.fleet.worker()
        run = int(self.office.ask("start", agent="hauls", metadata=self.fleet.haul(tag)))
        self.fleet.eventually(lambda: self.fleet.at_work(tag) == 1, "the call to be at work")
        self.survivor.send(signal.SIGCONT)
        return run, victim


@pytest.fixture(scope="module", params=["in_process", "procrastinate"])
def stage(request: pytest.FixtureRequest, prepared: Fleets) -> Iterator[Stage]:
    fleet = prepared(
        request.param, "postgres", M3_LEASE_SECONDS=LEASE, M3_SWEEP_SECONDS="0.3", M3_LOG_LEVEL="INFO"
    )
    yield Stage(fleet, fleet.office(), fleet.worker())
    fleet.stop()


def test_the_run_of_a_killed_worker_goes_on_and_its_job_blocks_nothing(stage: Stage) -> None:
    run, victim = stage.at_work_elsewhere("killed")

    victim.kill()
    stage.fleet.waits(
        run, "outcome"
    )  # the call was sent and has no reply: a person is asked what became of it
    stage.office.ask("answer", run=run)

    assert stage.fleet.finished(run) == "done"
    assert stage.fleet.at_work("killed") == 1
    stage.fleet.eventually(lambda: not stage.fleet.jobs(), "the dead worker's job to be gone")
    stage.fleet.let_go("killed")


def test_a_worker_that_was_replaced_while_it_hung_writes_nothing(stage: Stage) -> None:
    run, frozen = stage.at_work_elsewhere("frozen")
    before = stage.fleet.owner(run)

    frozen.send(signal.SIGSTOP)
    stage.fleet.waits(run, "outcome")
    stage.fleet.let_go("frozen")  # the server's reply now waits for a worker that has lost the run
    history = "select seq, type from runs_event where run_id = %s order by seq"
    said = stage.fleet.query(history, run)
    stage.survivor.send(signal.SIGSTOP)
    frozen.send(signal.SIGCONT)
    # It alone can drive this one; what it had to say of the other, it has tried to write before.
    assert stage.fleet.finished(stage.office.ask("start", agent="says")) == "said"
    stage.survivor.send(signal.SIGCONT)

    assert before is not None
    assert stage.fleet.query(history, run) == said
    stage.office.ask("answer", run=run)
    assert stage.fleet.finished(run) == "done"
    frozen.kill()


def test_a_run_is_driven_by_one_worker_at_a_time_and_runs_spread_over_all(stage: Stage) -> None:
    fleet = stage.fleet
    stage.survivor.send(signal.SIGSTOP)
    pair = [fleet.worker("--concurrency", "1") for _ in range(2)]
    tags = ["spread-1", "spread-2"]
    runs = [int(stage.office.ask("start", agent="hauls", metadata=fleet.haul(tag))) for tag in tags]

    fleet.eventually(lambda: all(fleet.at_work(tag) for tag in tags), "both calls to be at work")
    owners = {fleet.owner(run) for run in runs}
    for tag in tags:
        stage.fleet.let_go(tag)

    assert [fleet.finished(run) for run in runs] == ["done", "done"]
    assert len(owners) == 2
    assert [fleet.at_work(tag) for tag in tags] == [1, 1]
    for process in pair:
        process.kill()
    stage.survivor.send(signal.SIGCONT)
