"""Whose clock counts: on PostgreSQL the server's, so that a machine whose clock is off does no harm (`runs.clock`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.utils import timezone

from approvals import deadlines, decisions
from runs import clock, lease
from runs.access import Actor
from runs.errors import ManagedInputConflict, SessionBusyError, StateConflict
from runs.managed_input import DjangoManagedInputStore
from runs.models import LONG_AGO, Round, Run, User
from runs.worker.deadlines import sweep
from tests.services.managed_input.samples import opened

MakeRun = Callable[..., Run]
MakeRound = Callable[..., Round]
HOUR = dt.timedelta(hours=1)
ALLOW = {"approval": {"action": "accept", "content": {"decision": "allow"}}}

pytestmark = pytest.mark.django_db
on_a_server = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has this machine's clock alone"
)


@pytest.fixture(params=[-HOUR, HOUR], ids=["an hour slow", "an hour fast"])
def skewed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dt.timedelta:
    """This process's clock is off by this much; the database server's is not."""
    right, off = timezone.now, request.param
    monkeypatch.setattr(timezone, "now", lambda: right() + off)
    return off


def test_the_time_is_that_of_now() -> None:
    assert abs(clock.now() - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)


@on_a_server
def test_the_time_is_the_servers(skewed: dt.timedelta) -> None:
    assert clock.now().tzinfo is dt.UTC
    assert abs(clock.now() - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)


@on_a_server
def test_time_goes_on_within_a_transaction() -> None:
    with transaction.atomic():
        assert clock.now() < clock.now()


@on_a_server
def test_a_worker_whose_clock_is_off_steals_no_lease(make_run: MakeRun, skewed: dt.timedelta) -> None:
    run = make_run()
    held = lease.claim(run.pk, "one")
    assert held is not None

    with pytest.raises(SessionBusyError):
        lease.claim(run.pk, "two")
    assert sweep() == []
    lease.fence(held)


@on_a_server
def test_a_worker_whose_clock_is_off_keeps_its_lease_as_long_as_any_other(
    make_run: MakeRun, skewed: dt.timedelta
) -> None:
    run = make_run()
    held = lease.claim(run.pk, "one")
    assert held is not None
    lease.fence(held)

    until = Run.objects.values_list("lease_until", flat=True).get(pk=run.pk)
    assert abs(until - dt.datetime.now(dt.UTC) - lease.ttl()) < dt.timedelta(minutes=1)


@on_a_server
def test_a_worker_whose_clock_is_off_takes_over_what_is_expired(
    make_run: MakeRun, skewed: dt.timedelta
) -> None:
    run = make_run()
    assert lease.claim(run.pk, "one") is not None
    Run.objects.filter(pk=run.pk).update(lease_until=clock.moment() - dt.timedelta(seconds=1))

    assert sweep() == [run.pk]
    assert lease.claim(run.pk, "two") is not None


@on_a_server
def test_a_sleep_ends_at_its_time_whatever_our_clock_says(make_run: MakeRun, skewed: dt.timedelta) -> None:
    asleep, rested = make_run(), make_run()
    now = dt.datetime.now(dt.UTC)
    for run, until in ((asleep, now + HOUR / 2), (rested, now - dt.timedelta(seconds=5))):
        Run.objects.filter(pk=run.pk).update(seen_seq=1, wake_seq=1, lease_until=LONG_AGO, next_at=until)

    assert sweep() == [rested.pk]


@on_a_server
def test_a_deadline_passes_at_its_time_whatever_our_clock_says(
    make_round: MakeRound, alice: User, acting: Callable[[User], Actor], skewed: dt.timedelta
) -> None:
    now = dt.datetime.now(dt.UTC)
    open_, over = make_round(), make_round()
    Round.objects.filter(pk=open_.pk).update(deadline=now + HOUR / 2)
    Round.objects.filter(pk=over.pk).update(deadline=now - dt.timedelta(seconds=5))

    deadlines.extend(acting(alice), open_.pk)
    with pytest.raises(StateConflict, match="deadline of this request has passed"):
        decisions.decide(acting(alice), over.pk, ALLOW, idempotency_key="late")
    sweep()

    assert dict(Round.objects.values_list("pk", "status")) == {open_.pk: "pending", over.pk: "failed"}
    decided = decisions.decide(acting(alice), open_.pk, ALLOW, idempotency_key="in time")
    assert decided.outcome == "allowed"


@on_a_server
def test_a_parked_round_is_free_at_once_whatever_the_clock_of_who_parked_it(
    make_round: MakeRound, skewed: dt.timedelta
) -> None:
    round_ = make_round()

    assert round_.lease_expires_at <= clock.now()


@on_a_server
def test_a_store_whose_clock_is_off_holds_a_round_as_long_as_any_other(
    make_run: MakeRun, skewed: dt.timedelta
) -> None:
    held = opened(DjangoManagedInputStore(), execution := str(make_run().turns.get().pk))

    assert abs(held.created_at - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)
    with pytest.raises(ManagedInputConflict, match="still holds"):
        DjangoManagedInputStore().claim_round(
            execution,
            "round-1",
            owner_id="another",
            lease_seconds=60,
            expected_lease_token=held.lease.lease_token,
            delivery_state="not_started",
        )


def test_a_store_with_a_clock_of_its_own_goes_by_that(make_run: MakeRun) -> None:
    then = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)

    held = opened(DjangoManagedInputStore(clock=lambda: then), str(make_run().turns.get().pk))

    assert held.created_at == then
