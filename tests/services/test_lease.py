"""Who may drive a run: one claimer at a time, and a write that proves it (design section 6)."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from runs import clock as the_clock
from runs import engines, lease
from runs.errors import LeaseLost, SessionBusyError
from runs.lease import Lease
from runs.models import LONG_AGO, Run

MakeRun = Callable[..., Run]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[dt.datetime], None]:
    """A clock of the test's own, whatever the database: statements made meanwhile are forgotten with it."""
    monkeypatch.setattr(the_clock, "is_shared", lambda: False)
    monkeypatch.setattr(connection, "m3_prepared", {}, raising=False)

    def set_to(now: dt.datetime) -> None:
        monkeypatch.setattr(the_clock, "moment", lambda: now)
        monkeypatch.setattr(the_clock, "now", lambda: now)

    return set_to


@pytest.fixture
def enqueued() -> Iterator[list[int]]:
    """What an engine was told, in order."""
    told: list[int] = []

    class Recorder:
        def enqueue(self, run_id: int) -> None:
            told.append(run_id)

    engines.use(Recorder())
    yield told
    engines.use(None)


def claimed(run: Run, owner: str = "one") -> Lease:
    held = lease.claim(run.pk, owner)
    assert held is not None
    return held


def test_a_new_run_can_be_claimed_once(make_run: MakeRun) -> None:
    run = make_run()
    first = claimed(run)

    with pytest.raises(SessionBusyError):
        lease.claim(run.pk, "two")
    run.refresh_from_db()
    assert (run.lease_owner, run.lease_token) == ("one", first.token)
    assert run.lease_until > timezone.now()


def test_nothing_is_claimed_that_no_wake_has_reached(make_run: MakeRun) -> None:
    run = make_run()
    held = claimed(run)
    lease.release(held, seen=held.seen)

    assert lease.claim(run.pk, "two") is None
    lease.wake(run.pk)
    assert claimed(run, "two").token > held.token


def test_a_lease_can_be_claimed_at_the_instant_it_expires_and_not_before(
    make_run: MakeRun, clock: Callable[[dt.datetime], None]
) -> None:
    run = make_run()
    start = timezone.now()
    clock(start)
    claimed(run)

    clock(start + lease.ttl() - dt.timedelta(microseconds=1))
    with pytest.raises(SessionBusyError):
        lease.claim(run.pk, "two")
    clock(start + lease.ttl())
    assert lease.claim(run.pk, "two") is not None


def test_a_fenced_write_renews_the_lease_and_sets_its_fields(
    make_run: MakeRun, clock: Callable[[dt.datetime], None]
) -> None:
    run = make_run()
    held = claimed(run)
    later = timezone.now() + lease.ttl() / 2
    clock(later)

    lease.fence(held, output="so far")

    run.refresh_from_db()
    assert (run.lease_until, run.output) == (later + lease.ttl(), "so far")


@pytest.mark.parametrize("taken_by", ["a new claim", "a revocation", "a release", "giving up"])
def test_whoever_lost_the_run_can_write_nothing(make_run: MakeRun, taken_by: str) -> None:
    run = make_run()
    held = claimed(run)
    if taken_by == "a new claim":
        Run.objects.filter(pk=run.pk).update(lease_until=LONG_AGO)
        claimed(run, "two")
    elif taken_by == "a revocation":
        lease.revoke(run.pk)
    elif taken_by == "a release":
        lease.release(held, seen=held.seen)
    else:
        lease.give_up(held)
    before = Run.objects.values().get(pk=run.pk)

    with pytest.raises(LeaseLost):
        lease.fence(held, output="stale")
    with pytest.raises(LeaseLost):
        lease.release(held, seen=held.seen)
    lease.give_up(held)

    assert Run.objects.values().get(pk=run.pk) == before


def test_a_same_named_owner_from_an_earlier_claim_is_refused_by_its_token(make_run: MakeRun) -> None:
    run = make_run()
    old = claimed(run)
    lease.give_up(old)
    new = claimed(run)

    with pytest.raises(LeaseLost):
        lease.fence(old)
    lease.fence(new)


def test_a_wake_that_comes_while_the_run_is_driven_is_not_lost(make_run: MakeRun) -> None:
    run = make_run()
    held = claimed(run)
    lease.wake(run.pk)

    assert lease.release(held, seen=held.seen) is True
    again = claimed(run)
    assert lease.release(again, seen=again.seen) is False
    assert lease.claim(run.pk, "one") is None


def test_a_released_run_is_free_and_keeps_its_alarm(make_run: MakeRun) -> None:
    run = make_run()
    held = claimed(run)
    alarm = timezone.now() + dt.timedelta(hours=1)

    lease.release(held, seen=held.seen, next_at=alarm)

    run.refresh_from_db()
    assert (run.lease_owner, run.lease_until, run.next_at) == (None, LONG_AGO, alarm)
    lease.wake(run.pk)
    run.refresh_from_db()
    assert run.next_at is None


def test_a_run_that_was_given_up_is_due_at_once(make_run: MakeRun) -> None:
    run = make_run()
    lease.give_up(claimed(run))

    assert list(Run.objects.due(timezone.now())) == [run]
    assert claimed(run, "two").owner == "two"


def test_a_revoked_run_is_free_and_no_more_due_than_before(make_run: MakeRun) -> None:
    run = make_run()
    held = claimed(run)
    lease.revoke(run.pk)
    run.refresh_from_db()

    assert (run.lease_owner, run.lease_until) == (None, LONG_AGO)
    assert run.lease_token > held.token


def test_taking_over_frees_every_lease_and_counts_them(make_run: MakeRun) -> None:
    runs = [make_run() for _ in range(3)]
    for run in runs[:2]:
        claimed(run, "the process that died")

    assert lease.take_over() == 2
    assert set(Run.objects.due(timezone.now())) == set(runs)
    assert lease.take_over() == 0


def test_a_wake_tells_the_engine_which_run(make_run: MakeRun, enqueued: list[int]) -> None:
    run = make_run()
    lease.wake(run.pk)

    assert enqueued == [run.pk, run.pk]


@pytest.mark.django_db(transaction=True)
def test_of_eight_threads_that_claim_at_once_one_wins_and_the_others_learn_that_it_is_busy(
    make_run: MakeRun,
) -> None:
    run = make_run()
    together = threading.Barrier(8)

    def contend(number: int) -> Lease | None:
        try:
            together.wait(20)
            with transaction.atomic():
                return lease.claim(run.pk, f"worker {number}")
        except SessionBusyError:
            return None
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        winners = [held for held in pool.map(contend, range(8)) if held is not None]

    assert len(winners) == 1
    run.refresh_from_db()
    assert (run.lease_owner, run.lease_token) == (winners[0].owner, winners[0].token)
    assert run.lease_token == 1
