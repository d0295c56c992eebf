"""The life of a delivery: due, taken for an attempt, done or due again, given up; and sent once more by hand.

The rows are the truth, so a restart forgets nothing: an attempt whose process died is due again when its time is over.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import F, Min, QuerySet

from runs import access, clock
from runs.access import Actor
from runs.models import Role, WebhookDelivery
from runs.models.exact import shown
from runs.models.webhook import DeliveryStatus
from runs.webhooks import outbox

ATTEMPTS: Final = 3
FIRST_PAUSE: Final = dt.timedelta(seconds=2)
"""Between the first attempt and the second; every further one is twice as long (m8tes-http 7)."""

ATTEMPT_SECONDS: Final = 10.0
"""How long an endpoint may take for everything, from its name to its answer."""

LOST_AFTER: Final = dt.timedelta(seconds=3 * ATTEMPT_SECONDS)
"""When an attempt that nobody finished counts as lost with its process."""

MAX_ANSWER: Final = 2_000
"""Characters of an answer that are kept."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A delivery that was taken to be sent now. `number` counts from 1 and is the fence: a later one wins."""

    delivery_id: int
    endpoint_id: int
    url: str
    secret: str
    event_id: str
    body: str
    number: int


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of an attempt. `status` is None if there was no answer; then `text` says why."""

    ok: bool
    status: int | None = None
    text: str = ""


def anything_due(busy: Collection[int]) -> bool:
    """Whether `take` would find something; asks without writing."""
    return WebhookDelivery.objects.due(clock.now()).exclude(endpoint__in=busy).exists()


def take(busy: Collection[int], most: int) -> list[Attempt]:
    """Take due deliveries, at most one per endpoint and none of the `busy` ones, the oldest first.

    Must run inside a transaction. Whoever comes second for a row gets another, or none.
    """
    now = clock.now()
    due = WebhookDelivery.objects.due(now).exclude(endpoint__in=busy)
    oldest = (
        due.values("endpoint").annotate(first=Min("pk")).order_by("first").values_list("first", flat=True)
    )
    taken = []
    for pk in list(oldest[:most]):
        mine = _still_due(pk, now).filter(attempts__lt=ATTEMPTS)
        if not mine.update(attempts=F("attempts") + 1, next_retry_at=now + LOST_AFTER):
            _give_up_if_lost(pk, now)
            continue
        row = WebhookDelivery.objects.select_related("endpoint").get(pk=pk)
        taken.append(
            Attempt(
                delivery_id=pk,
                endpoint_id=row.endpoint_id,
                url=row.endpoint.url,
                secret=row.endpoint.secret,
                event_id=row.event_id,
                body=row.body,
                number=row.attempts,
            )
        )
    return taken


def finish(attempt: Attempt, answer: Answer) -> dt.timedelta | None:
    """Keep what came of an attempt; how long until the next one, None if there is none.

    Nothing is changed if somebody has taken the delivery since, or it is gone.
    """
    if answer.ok:
        status, pause = DeliveryStatus.SUCCESS, None
    elif attempt.number >= ATTEMPTS:
        status, pause = DeliveryStatus.FAILED, None
    else:
        status, pause = DeliveryStatus.PENDING, FIRST_PAUSE * 2 ** (attempt.number - 1)
    now = clock.now()
    WebhookDelivery.objects.filter(
        pk=attempt.delivery_id, status=DeliveryStatus.PENDING.value, attempts=attempt.number
    ).update(
        status=status.value,
        next_retry_at=now + pause if pause else None,
        response_status_code=answer.status,
        response_body=shown(answer.text, MAX_ANSWER),
        updated_at=now,
    )
    return pause


def forget_old(most: int) -> int:
    """Delete deliveries that are older than the log is kept, at most so many, the oldest first; gives how many."""
    limit = clock.now() - dt.timedelta(days=settings.M3.webhook_log_days)
    oldest = WebhookDelivery.objects.order_by("pk").values_list("pk", "created_at")[:most]
    old = [pk for pk, created_at in oldest if created_at < limit]
    return WebhookDelivery.objects.filter(pk__in=old).delete()[0]


@transaction.atomic
def redeliver(actor: Actor, endpoint_id: int, delivery_id: int) -> WebhookDelivery:
    """Send a delivery once more, with the same id and body, as a delivery of its own; the old one stays as it is.

    Raises NotAllowed, NotFound.
    """
    actor.require(Role.ADMIN)
    old = access.get(actor, WebhookDelivery.objects.all(), pk=delivery_id, endpoint=endpoint_id)
    again = WebhookDelivery.objects.create(
        endpoint_id=old.endpoint_id,
        run_id=old.run_id,
        event_type=old.event_type,
        event_id=old.event_id,
        body=old.body,
        next_retry_at=clock.now(),
    )
    outbox.announce()
    return again


def _still_due(pk: int, now: dt.datetime) -> QuerySet[WebhookDelivery]:
    """One row, for an update that several senders may try at once. Of that row alone, without a join: PostgreSQL looks
    again at the row that it waited for, but not at what was joined to it."""
    return WebhookDelivery.objects.filter(pk=pk, status=DeliveryStatus.PENDING.value, next_retry_at__lte=now)


def _give_up_if_lost(pk: int, now: dt.datetime) -> None:
    """The last attempt was lost with its process; whether it arrived is not known."""
    _still_due(pk, now).filter(attempts__gte=ATTEMPTS).update(
        status=DeliveryStatus.FAILED.value,
        next_retry_at=None,
        response_status_code=None,
        response_body="The last attempt was cut off; whether it arrived is not known.",
        updated_at=now,
    )
