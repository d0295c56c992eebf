"""Deliveries of webhooks where several workers send, and how long their log is kept."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from runs import clock
from runs.access import Actor
from runs.models import Run, User, WebhookDelivery
from runs.webhooks import deliveries, endpoints

Acting = Callable[[User], Actor]
MakeRun = Callable[..., Run]

TIMES = 8
"""How often the race is run."""


@pytest.fixture
def hooked(ada: User, acting: Acting, settings: Any) -> None:
    """Somebody wants to be told when a run starts."""
    settings.M3.allow_private_urls = True
    endpoints.create(acting(ada), "http://127.0.0.1:9/hook", ["run.started"])


@pytest.mark.django_db(transaction=True)
def test_of_two_senders_at_once_one_gets_the_delivery(hooked: None, make_run: MakeRun) -> None:
    def take(together: threading.Barrier) -> int:
        try:
            together.wait(20)
            with transaction.atomic():
                return len(deliveries.take([], 9))
        finally:
            connections.close_all()

    for _ in range(TIMES):
        make_run()
        together = threading.Barrier(2)
        with ThreadPoolExecutor(2) as pool:
            taken = list(pool.map(take, [together, together], timeout=60))
        assert sorted(taken) == [0, 1]
    assert set(WebhookDelivery.objects.values_list("attempts", flat=True)) == {1}


def test_a_delivery_that_another_sender_took_since_the_look_is_not_taken_again(
    hooked: None, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run()
    seen = WebhookDelivery.objects.get()
    (taken,) = deliveries.take([], 9)

    still_due = deliveries._still_due(seen.pk, clock.now())

    assert (taken.number, still_due.update(attempts=9)) == (1, 0)
    assert str(still_due.query).count("JOIN") == 0  # of a joined row PostgreSQL would not see the change


def test_deliveries_are_kept_as_long_as_the_setting_says_and_then_deleted_a_few_at_a_time(
    hooked: None, make_run: MakeRun, settings: Any
) -> None:
    settings.M3.webhook_log_days = 30
    for _ in range(4):
        make_run()
    *old, young = WebhookDelivery.objects.order_by("pk")
    long_ago = clock.now() - dt.timedelta(days=30, minutes=1)
    WebhookDelivery.objects.filter(pk__in=[row.pk for row in old]).update(created_at=long_ago)

    assert [deliveries.forget_old(2) for _ in range(3)] == [2, 1, 0]

    assert WebhookDelivery.objects.get() == young


def test_a_delivery_that_is_almost_too_old_stays(hooked: None, make_run: MakeRun, settings: Any) -> None:
    settings.M3.webhook_log_days = 30
    make_run()
    WebhookDelivery.objects.update(created_at=clock.now() - dt.timedelta(days=29, hours=23))

    assert deliveries.forget_old(9) == 0
