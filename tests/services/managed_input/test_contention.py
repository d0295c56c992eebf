"""Many at once: one winner, losers who are told so, and one name for each cause (C26, C41).

How often is `M3_TEST_REPEATS`. On the installation's database, and on a SQLite file with a connection per operation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections

from runs import control, rounds
from runs.errors import M3Error, StateConflict
from runs.managed_input import (
    DjangoManagedInputStore,
    ElicitationResponse,
    ManagedInputConflict,
    ManagedInputRecord,
    ManagedInputStore,
    SQLiteManagedInputStore,
)
from runs.models import Event, Round, Run
from runs.round_rows import Decider
from tests.requirements import repeats
from tests.services.managed_input.files import execution_in
from tests.services.managed_input.samples import HOLDER, opened, submitted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]

THREADS = 8
PATIENCE = 60
"""Seconds after which a race counts as stuck."""

Race = Callable[[Sequence[Callable[[], Any]]], list[Any]]
"""Runs all of them at the same moment; gives for each what it returned, or the M3Error that it raised."""


@pytest.fixture
def race() -> Iterator[Race]:
    everybody = threading.Barrier(THREADS)

    def closing() -> None:
        everybody.wait(PATIENCE)
        connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:

        def run(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
            start = threading.Barrier(len(jobs))
            waiting = [pool.submit(_outcome, start, job) for job in jobs]
            return [outcome.result(PATIENCE) for outcome in waiting]

        yield run
        for closed in [pool.submit(closing) for _ in range(THREADS)]:
            closed.result(PATIENCE)


def _outcome(start: threading.Barrier, job: Callable[[], Any]) -> Any:
    start.wait(PATIENCE)
    try:
        return job()
    except M3Error as error:
        return error


PLACES = ["installation"] if connection.vendor == "postgresql" else ["installation", "file"]
"""The file is the same whatever the installation has, so once is enough."""


@pytest.fixture(params=PLACES)
def contended(
    request: pytest.FixtureRequest, tmp_path: Path, transactional_db: None
) -> tuple[ManagedInputStore, str]:
    """A store and an execution in it."""
    if request.param == "file":
        file = tmp_path / "rounds.sqlite"
        store = SQLiteManagedInputStore(file, busy_timeout_ms=PATIENCE * 1000)
        return store, execution_in(file)
    make_run: Callable[..., Run] = request.getfixturevalue("make_run")
    return DjangoManagedInputStore(), str(make_run().turns.get().pk)


def answer_of(number: int) -> dict[str, ElicitationResponse]:
    return {"address": ElicitationResponse(action="accept", content={"street": f"Street {number}"})}


def submitting(
    store: ManagedInputStore, execution: str, round_id: str, number: int
) -> Callable[[], ManagedInputRecord]:
    return lambda: submitted(
        store, execution, round_id, responses=answer_of(number), response_idempotency_key=f"k{number}"
    )


def test_of_eight_different_answers_at_once_one_is_stored(
    contended: tuple[ManagedInputStore, str], race: Race
) -> None:
    """C26."""
    store, execution = contended
    for number in range(repeats()):
        round_id = f"round-{number}"
        opened(store, execution, round_id, logical_operation_id=f"op-{number}")
        outcomes = race([submitting(store, execution, round_id, each) for each in range(THREADS)])

        won = [each for each, outcome in enumerate(outcomes) if isinstance(outcome, ManagedInputRecord)]
        assert len(won) == 1
        lost = [outcome for each, outcome in enumerate(outcomes) if each not in won]
        assert {type(outcome) for outcome in lost} == {ManagedInputConflict}
        stored = store.get_round(execution, round_id)
        assert stored == outcomes[won[0]]
        assert stored.responses == answer_of(won[0])
        assert stored.response_idempotency_key == f"k{won[0]}"


def test_the_same_answer_eight_times_at_once_is_one_answer(
    contended: tuple[ManagedInputStore, str], race: Race
) -> None:
    """C26: everybody gets the same receipt."""
    store, execution = contended
    for number in range(repeats()):
        round_id = f"round-{number}"
        opened(store, execution, round_id, logical_operation_id=f"op-{number}")
        outcomes = race([submitting(store, execution, round_id, 0)] * THREADS)

        assert outcomes == [store.get_round(execution, round_id)] * THREADS


def test_of_eight_that_claim_at_once_one_gets_the_round(
    contended: tuple[ManagedInputStore, str], race: Race
) -> None:
    """C28, C31."""
    store, execution = contended
    for number in range(repeats()):
        round_id = f"round-{number}"
        opened(store, execution, round_id, logical_operation_id=f"op-{number}")
        store.renew(execution, round_id, lease_seconds=1e-6, **HOLDER)

        def claim(owner: int, round_id: str = round_id) -> ManagedInputRecord:
            return store.claim_round(
                execution,
                round_id,
                owner_id=f"worker-{owner}",
                lease_seconds=60,
                expected_lease_token=HOLDER["lease_token"],
                delivery_state="not_started",
            )

        outcomes = race([lambda each=each, claim=claim: claim(each) for each in range(THREADS)])
        won = [outcome for outcome in outcomes if isinstance(outcome, ManagedInputRecord)]
        assert won == [store.get_round(execution, round_id)]
        assert {type(outcome) for outcome in outcomes if outcome not in won} == {ManagedInputConflict}


def test_cancelling_and_answering_at_once_end_in_one_truth(make_run: Callable[..., Run], race: Race) -> None:
    """C41: the run is cancelled, whoever came first; the answer was stored, or refused and never stored."""
    store, decider = DjangoManagedInputStore(), Decider(user=None, via="page")
    answer = {"address": {"action": "accept", "content": {"street": "Main St 1"}}}
    for number in range(repeats()):
        run, round_id = make_run(), f"round-{number}"
        opened(store, str(run.turns.get().pk), round_id)
        cancelled, answered = race(
            [
                lambda run=run: control.cancel(run.pk, decider=decider),
                lambda round_id=round_id: rounds.answer(
                    round_id, answer, decider=decider, idempotency_key="k"
                ),
            ]
        )
        after, round_ = Run.objects.get(pk=run.pk), Round.objects.get(pk=round_id)
        told = list(Event.objects.filter(run=run).order_by("seq").values_list("type", flat=True))

        assert isinstance(cancelled, Run)
        assert (after.status, after.outcome, after.error_code) == ("finished", "cancelled", "cancelled")
        assert (round_.status, round_.outcome, round_.failure_code) == ("failed", "cancelled", "cancelled")
        assert (told.count("run.cancelled"), told.count("round.failed")) == (1, 1)
        if isinstance(answered, Round):
            assert round_.responses == answer
            assert "elicitation.response" in told
        else:
            assert type(answered) is StateConflict
            assert (round_.responses, "elicitation.response" in told) == (None, False)
