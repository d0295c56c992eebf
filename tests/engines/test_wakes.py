"""What an engine promises of every wake, on each of them: it is atomic with what caused it, and it is never lost.

Where the engine carries wakes from process to process there is no sweep here that could hide a lost one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.engines.conftest import Fleets
from tests.engines.fleet import Fleet
from tests.engines.office import Office

NEVER = "100000"
"""Seconds: longer than any test."""

KINDS = [("in_process", "sqlite"), ("in_process", "postgres"), ("procrastinate", "postgres")]


@dataclass
class Stage:
    """An installation at work, with somebody in another process."""

    fleet: Fleet
    office: Office

    @property
    def sweeps(self) -> bool:
        return self.fleet.settings["M3_SWEEP_SECONDS"] != NEVER

    def asked(self) -> int:
        """A run that waits for a decision."""
        run = int(self.office.ask("start", agent="asks"))
        self.fleet.waits(run, "question")
        self.fleet.eventually(lambda: self.fleet.owner(run) is None, f"run {run} to be given back")
        return run


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]} on {kind[1]}")
def stage(request: pytest.FixtureRequest, prepared: Fleets) -> Iterator[Stage]:
    engine, store = request.param
    sweep = NEVER if engine == "procrastinate" else "0.3"
    # Where workers hear of each other's wakes, no look at the third of a lease hides a lost one either.
    lease = "3" if store == "sqlite" else "300"
    fleet = prepared(engine, store, M3_SWEEP_SECONDS=sweep, M3_LEASE_SECONDS=lease)
    fleet.worker()
    if not fleet.on_sqlite:
        fleet.worker()
    yield Stage(fleet, fleet.office())
    fleet.stop()


def test_a_run_that_another_process_starts_goes_on_by_itself(stage: Stage) -> None:
    assert stage.fleet.finished(stage.office.ask("start", agent="says")) == "said"


def test_a_decision_of_another_process_lets_the_run_go_on(stage: Stage) -> None:
    run = stage.asked()

    assert stage.office.ask("answer", run=run) == "response_validated"

    assert stage.fleet.finished(run) == "asked"


def test_a_decision_that_is_rolled_back_leaves_nothing_behind(stage: Stage) -> None:
    run = stage.asked()
    state = "select wake_seq, seen_seq, status from runs_run where id = %s"
    before = stage.fleet.query(state, run)

    assert stage.office.ask("answer_and_undo", run=run) == "response_validated"

    assert stage.fleet.query(state, run) == before
    assert [job for job in stage.fleet.jobs() if job[2] == str(run)] == []
    # Whatever reached a worker in vain is behind what comes now.
    assert stage.fleet.finished(stage.office.ask("start", agent="says")) == "said"
    assert stage.fleet.query(state, run) == before


def test_a_decision_counts_even_if_its_process_is_killed_at_the_commit(stage: Stage) -> None:
    run = stage.asked()

    doomed = stage.fleet.office()
    assert doomed.ask("answer_and_die", run=run) is None
    assert doomed.process.returncode == -9

    assert stage.fleet.finished(run) == "asked"


def test_a_sleep_ends_by_itself(stage: Stage) -> None:
    assert stage.fleet.finished(stage.office.ask("start", agent="sleeps")) == "rested"


def test_answers_reach_sessions_that_wait_in_whichever_worker(stage: Stage) -> None:
    runs = [stage.office.ask("start", agent="is asked") for _ in range(4)]
    for run in runs:
        stage.fleet.waits(run, "elicitation")
    for run in runs:
        stage.office.ask("answer", run=run)

    assert [stage.fleet.finished(run) for run in runs] == ["done"] * 4


def test_a_wake_that_nobody_was_told_of_is_found_by_a_sweep(stage: Stage) -> None:
    run = stage.office.ask("start_unheard", agent="says")
    if not stage.sweeps:
        stage.fleet.worker()  # a worker's first look is one

    assert stage.fleet.finished(run) == "said"


def test_no_job_is_left_when_the_work_is_done(stage: Stage) -> None:
    assert stage.fleet.finished(stage.office.ask("start", agent="says")) == "said"

    stage.fleet.eventually(lambda: not stage.fleet.jobs(), "the queue to be empty")
