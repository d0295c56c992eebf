"""From a stored answer to a resolved round, and the ways in which a round fails on the way."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from django.db.models import F

from runs.managed_input import (
    DjangoManagedInputStore,
    ManagedInputConflict,
    ManagedInputStateError,
    ManagedInputValidationError,
)
from runs.models import Round, Run, Turn
from tests.services.managed_input.samples import HOLDER, STEPS, Clock, brought_to, opened, submitted

STATUSES = ["pending", "response_validated", "delivery_started", "delivered", "resolved"]
TARGET = {"start_delivery": "delivery_started", "mark_delivered": "delivered", "resolve": "resolved"}


def due(run: Run) -> bool:
    return Run.objects.filter(pk=run.pk).exclude(wake_seq=F("seen_seq")).exists()


def seen(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(seen_seq=F("wake_seq"))


def test_an_answer_is_delivered_step_by_step(
    store: DjangoManagedInputStore, execution: str, clock: Clock, run: Run
) -> None:
    """C30: each step has its time; an attempt counts once; the run goes on when all is done."""
    brought_to(store, execution, "response_validated")
    seen(run)
    for step in STEPS:
        clock.pass_(1)
        record = getattr(store, step)(execution, "round-1", **HOLDER)
        assert (record.status, record.updated_at) == (TARGET[step], clock.now)
        assert getattr(store, step)(execution, "round-1", **HOLDER) == record
        assert due(run) is (step == "resolve")

    times = [record.delivery_started_at, record.delivered_at, record.resolved_at]
    assert times == sorted(times)
    assert len(set(times)) == 3
    assert record.delivery_attempts == 1
    assert Round.objects.get().held is False


@pytest.mark.parametrize(("status", "step"), list(itertools.product(STATUSES, STEPS)))
def test_no_step_is_skipped_or_undone(
    store: DjangoManagedInputStore, execution: str, status: str, step: str
) -> None:
    """C30."""
    before = brought_to(store, execution, status)
    if STATUSES.index(TARGET[step]) - STATUSES.index(status) in (0, 1):
        assert getattr(store, step)(execution, "round-1", **HOLDER).status == TARGET[step]
        return

    with pytest.raises(ManagedInputStateError):
        getattr(store, step)(execution, "round-1", **HOLDER)
    assert store.get_round(execution, "round-1") == before


@pytest.mark.parametrize("step", STEPS)
def test_what_failed_is_not_delivered(store: DjangoManagedInputStore, execution: str, step: str) -> None:
    """C30, C36."""
    brought_to(store, execution, "failed")

    with pytest.raises(ManagedInputStateError):
        getattr(store, step)(execution, "round-1", **HOLDER)


def fail(store: DjangoManagedInputStore, execution: str, code: str = "broken", message: str = "It broke."):  # type: ignore[no-untyped-def]
    return store.fail(execution, "round-1", code=code, message=message, **HOLDER)


@pytest.mark.parametrize("status", STATUSES[:-1])
def test_a_round_fails_from_every_unresolved_status(
    store: DjangoManagedInputStore,
    execution: str,
    clock: Clock,
    status: str,
    run: Run,
    turn_now: Callable[[], Turn],
) -> None:
    """C33: and its turn goes on without it."""
    before = brought_to(store, execution, status)
    seen(run)
    clock.pass_(1)
    record = fail(store, execution)

    assert (record.status, record.failure_code, record.failure_message) == ("failed", "broken", "It broke.")
    assert (record.failed_at, record.updated_at) == (clock.now, clock.now)
    assert (record.responses, record.lease) == (before.responses, before.lease)
    assert turn_now().status == "running_turn"
    assert due(run)


def test_failing_again_for_the_same_reason_changes_nothing_and_for_another_is_a_conflict(
    store: DjangoManagedInputStore, execution: str, clock: Clock
) -> None:
    """C33."""
    opened(store, execution)
    first = fail(store, execution)
    clock.pass_(1)

    assert fail(store, execution) == first
    for changed in ({"code": "other"}, {"message": "Something else."}):
        with pytest.raises(ManagedInputConflict):
            fail(store, execution, **changed)
    assert store.get_round(execution, "round-1") == first


def test_a_resolved_round_does_not_fail(store: DjangoManagedInputStore, execution: str) -> None:
    """C33."""
    before = brought_to(store, execution, "resolved")

    with pytest.raises(ManagedInputStateError):
        fail(store, execution)
    assert store.get_round(execution, "round-1") == before


@pytest.mark.parametrize(("code", "message"), [("", "m"), ("c", ""), ("c" * 61, "m"), (None, "m")])
def test_a_failure_has_a_code_and_a_message(
    store: DjangoManagedInputStore, execution: str, code: str, message: str
) -> None:
    before = opened(store, execution)

    with pytest.raises(ManagedInputValidationError):
        fail(store, execution, code, message)
    assert store.get_round(execution, "round-1") == before


@pytest.mark.parametrize(
    ("code", "outcome"), [("timeout", "timed_out"), ("cancelled", "cancelled"), ("broken", "superseded")]
)
def test_a_known_cause_is_called_the_same_everywhere(
    store: DjangoManagedInputStore, execution: str, code: str, outcome: str
) -> None:
    """C33, R31: whoever writes the code, page and API name one outcome for it."""
    opened(store, execution)
    fail(store, execution, code)

    assert Round.objects.get().outcome == outcome


def test_the_operation_may_ask_again_after_each_answer(
    store: DjangoManagedInputStore, execution: str, turn_now: Callable[[], Turn]
) -> None:
    """C10, C39."""
    brought_to(store, execution, "resolved")
    opened(store, execution, "round-2", index=1)
    assert turn_now().status == "waiting_for_input"

    assert submitted(store, execution, "round-2").round_index == 1
