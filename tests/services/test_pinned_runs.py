"""Runs that only one host can go on with: others neither claim them nor hold them back for ever (`runs.hosts`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.db import connection

from runs import clock, hosts, lease
from runs.errors import SessionBusyError
from runs.models import LONG_AGO, LeftSession, Run, WorkerHost
from runs.worker.deadlines import sweep

MakeRun = Callable[..., Run]
ELSEWHERE = "other 0000000000000000 0000000000000000"

pytestmark = pytest.mark.django_db
on_a_server = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one process, so one host"
)


def pinned(run: Run, host: str, **fields: object) -> Run:
    Run.objects.filter(pk=run.pk).update(pin=host, **fields)
    return run


def heard_of(host: str, ago: dt.timedelta) -> None:
    WorkerHost.objects.update_or_create(pk=host, defaults={"seen_at": clock.now() - ago})


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a server may have several hosts")
def test_where_one_process_has_everything_nothing_is_pinned_and_a_pin_stops_nobody(make_run: MakeRun) -> None:
    run = make_run()
    hosts.pin(run.pk)
    assert Run.objects.get(pk=run.pk).pin is None
    assert sweep() == [pinned(run, ELSEWHERE).pk]
    assert lease.claim(run.pk, "one") is not None


@on_a_server
def test_a_run_that_is_pinned_here_is_claimed_here_and_stays_pinned(make_run: MakeRun) -> None:
    run = make_run()
    hosts.pin(run.pk)
    assert sweep() == [run.pk]
    assert lease.claim(run.pk, "one") is not None
    assert Run.objects.get(pk=run.pk).pin == hosts.here()


@on_a_server
def test_a_run_that_is_pinned_elsewhere_is_neither_found_nor_claimed_and_its_wake_is_kept(
    make_run: MakeRun,
) -> None:
    run = pinned(make_run(), ELSEWHERE)
    heard_of(ELSEWHERE, dt.timedelta(seconds=1))
    assert hosts.let_go() == 0
    assert sweep() == []
    with pytest.raises(SessionBusyError, match="another worker's"):
        lease.claim(run.pk, "one")
    assert Run.objects.due(clock.now()).filter(pk=run.pk).exists()


@on_a_server
def test_without_a_wake_there_is_nothing_to_be_told_about_a_pinned_run(make_run: MakeRun) -> None:
    run = pinned(make_run(), ELSEWHERE, seen_seq=1, wake_seq=1)
    assert lease.claim(run.pk, "one") is None


@on_a_server
@pytest.mark.parametrize("heard", [True, False])
def test_a_run_is_let_go_when_its_host_is_gone_or_was_never_heard_of(make_run: MakeRun, heard: bool) -> None:
    run = pinned(make_run(), ELSEWHERE)
    if heard:
        heard_of(ELSEWHERE, hosts.gone_after() + dt.timedelta(seconds=1))
    assert hosts.is_gone(ELSEWHERE)
    assert hosts.let_go() == 1
    assert sweep() == [run.pk]
    assert lease.claim(run.pk, "one") is not None


@on_a_server
def test_a_run_that_is_being_driven_stays_pinned_whatever_its_hosts_signs_of_life(make_run: MakeRun) -> None:
    run = make_run()
    lease.claim(run.pk, "there")
    pinned(run, ELSEWHERE)
    assert hosts.let_go() == 0
    Run.objects.filter(pk=run.pk).update(lease_until=LONG_AGO)
    assert hosts.let_go() == 1


@on_a_server
def test_a_sign_of_life_counts_from_now_by_the_servers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.utils.timezone.now", lambda: dt.datetime(2001, 1, 1, tzinfo=dt.UTC))
    for _ in range(2):
        hosts.beat()
        assert not hosts.is_gone(hosts.here())
    assert abs(WorkerHost.objects.get().seen_at - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)


@on_a_server
def test_a_host_is_forgotten_only_when_every_keeper_there_has_ended(settings: LazySettings) -> None:
    settings.M3.keeper_orphan_seconds = 1000.0
    for host, seconds in (("gone", 500), ("forgotten", 1500)):
        heard_of(host, dt.timedelta(seconds=seconds))
        LeftSession.objects.create(
            host=host,
            keeper=f"/{host}.sock",
            operation_id="1",
            token=1,
            left_at=clock.now() - dt.timedelta(seconds=seconds),
        )
    hosts.forget_old()
    assert list(WorkerHost.objects.values_list("pk", flat=True)) == ["gone"]
    assert list(LeftSession.objects.values_list("host", flat=True)) == ["gone"]
