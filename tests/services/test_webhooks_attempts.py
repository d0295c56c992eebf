"""Attempts of a delivery, by a clock: when each is due, what ends them, what a lost process leaves (m8tes-http 7)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from runs import clock
from runs.access import Actor
from runs.errors import NotAllowed, NotFound
from runs.models import Run, User, WebhookDelivery, WebhookEndpoint
from runs.webhooks import deliveries, endpoints
from runs.webhooks.deliveries import Answer, finish, redeliver, take

Acting = Callable[[User], Actor]
MakeRun = Callable[..., Run]
FAILS = Answer(ok=False, status=503, text="later")
SECOND = dt.timedelta(seconds=1)


class Clock:
    def __init__(self) -> None:
        self.now = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)

    def passes(self, seconds: float) -> None:
        self.now += dt.timedelta(seconds=seconds)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(clock, "now", lambda: moved.now)
    return moved


@pytest.fixture
def hook(ada: User, acting: Acting, settings: Any) -> Callable[[], WebhookEndpoint]:
    settings.M3.allow_private_urls = True
    return lambda: endpoints.create(acting(ada), "http://127.0.0.1:9/hook", ["run.started"])


@pytest.fixture
def waiting(
    time: Clock, hook: Callable[[], WebhookEndpoint], make_run: MakeRun
) -> Callable[[], WebhookDelivery]:
    hook()
    make_run()
    return WebhookDelivery.objects.get


def test_three_attempts_two_and_four_seconds_apart_and_then_it_has_failed(
    waiting: Callable[[], WebhookDelivery], time: Clock
) -> None:
    for pause in (2, 4):
        (attempt,) = take([], 9)
        assert finish(attempt, FAILS) == pause * SECOND
        row = waiting()
        assert (row.status, row.attempts, row.response_status_code) == ("pending", attempt.number, 503)
        assert row.next_retry_at == time.now + pause * SECOND
        time.passes(pause - 0.1)
        assert take([], 9) == []
        time.passes(0.1)

    (last,) = take([], 9)
    assert finish(last, FAILS) is None
    row = waiting()
    assert (row.status, row.attempts, row.next_retry_at, row.response_body) == ("failed", 3, None, "later")
    time.passes(3600)
    assert take([], 9) == []


def test_an_answer_that_is_well_ends_it(waiting: Callable[[], WebhookDelivery], time: Clock) -> None:
    (attempt,) = take([], 9)
    assert finish(attempt, Answer(ok=True, status=204)) is None
    assert (waiting().status, waiting().response_status_code, waiting().attempts) == ("success", 204, 1)
    time.passes(3600)
    assert take([], 9) == []


def test_an_attempt_is_taken_once(waiting: Callable[[], WebhookDelivery]) -> None:
    assert len(take([], 9)) == 1
    assert take([], 9) == []


def test_an_attempt_whose_process_died_is_made_again(
    waiting: Callable[[], WebhookDelivery], time: Clock
) -> None:
    (lost,) = take([], 9)
    time.passes(deliveries.LOST_AFTER.total_seconds())
    (again,) = take([], 9)
    assert (again.number, again.event_id, again.body) == (2, lost.event_id, lost.body)
    assert finish(lost, FAILS) is not None, "it does not know that it was given up"
    assert waiting().response_status_code is None, "and what it says no longer counts"


def test_a_last_attempt_whose_process_died_has_failed(
    waiting: Callable[[], WebhookDelivery], time: Clock
) -> None:
    for _ in range(deliveries.ATTEMPTS):
        assert take([], 9)
        time.passes(deliveries.LOST_AFTER.total_seconds())
    assert take([], 9) == []
    assert waiting().status == "failed"
    assert "not known" in waiting().response_body


def test_an_attempt_under_way_is_not_taken_for_lost() -> None:
    assert deliveries.LOST_AFTER.total_seconds() > deliveries.ATTEMPT_SECONDS


def test_each_endpoint_gets_one_at_a_time_the_oldest_first(
    time: Clock, hook: Callable[[], WebhookEndpoint], make_run: MakeRun
) -> None:
    one, two, three = hook(), hook(), hook()
    for _ in range(3):
        make_run()
    first = WebhookDelivery.objects.order_by("pk").first()
    assert first is not None

    taken = take([three.pk], 9)

    assert [attempt.endpoint_id for attempt in taken] == [one.pk, two.pk]
    assert taken[0].delivery_id == first.pk
    assert len(take([], 1)) == 1, "no more than there is room for"


def test_a_long_answer_is_kept_in_part_and_can_always_be_stored(
    waiting: Callable[[], WebhookDelivery],
) -> None:
    (attempt,) = take([], 9)
    finish(attempt, Answer(ok=False, status=500, text="\x00" + "x" * 5000))
    assert len(waiting().response_body) == deliveries.MAX_ANSWER


def test_a_delivery_sent_again_is_one_of_its_own_with_the_same_id_and_body(
    waiting: Callable[[], WebhookDelivery], ada: User, alice: User, acting: Acting
) -> None:
    (attempt,) = take([], 9)
    finish(attempt, Answer(ok=True, status=200))
    old = waiting()

    again = redeliver(acting(ada), old.endpoint_id, old.pk)

    assert again.pk != old.pk
    assert (again.event_id, again.body, again.status, again.attempts) == (
        old.event_id,
        old.body,
        "pending",
        0,
    )
    assert [taken.delivery_id for taken in take([], 9)] == [again.pk]
    old.refresh_from_db()
    assert old.status == "success"
    with pytest.raises(NotAllowed):
        redeliver(acting(alice), old.endpoint_id, old.pk)


def test_a_delivery_of_another_account_or_endpoint_cannot_be_sent_again(
    waiting: Callable[[], WebhookDelivery],
    hook: Callable[[], WebhookEndpoint],
    ada: User,
    acting: Acting,
    other_account: Any,
) -> None:
    with pytest.raises(NotFound):
        redeliver(acting(ada), hook().pk, waiting().pk)
    WebhookEndpoint.objects.update(account=other_account)
    with pytest.raises(NotFound):
        redeliver(acting(ada), waiting().endpoint_id, waiting().pk)
