"""The endpoints of an account: admins add, change and remove them (m8tes-http 7)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from runs import access, audit
from runs.access import Actor
from runs.end_users import end_user
from runs.errors import ModelValidationError
from runs.models import Role, WebhookDelivery, WebhookEndpoint
from runs.models.webhook import DeliveryStatus
from runs.redaction import redact_urls
from runs.webhooks.targets import check_target
from runs.webhooks.words import DEFAULT_EVENTS, WebhookEvent

MAX_ENDPOINTS: Final = 100
"""Endpoints of one account."""

SWITCHED_OFF: Final = "The webhook was switched off before this was sent."


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is to change of an endpoint; None leaves it as it is."""

    url: str | None = None
    events: Sequence[str] | None = None
    active: bool | None = None
    rotate_secret: bool = False


def create(
    actor: Actor, url: str, events: Sequence[str] | None = None, *, user_id: str | None = None
) -> WebhookEndpoint:
    """Add an endpoint, with a secret that is shown this once. `events` None is what most want to know.

    Raises NotAllowed, EgressRefused, ModelValidationError.
    """
    actor.require(Role.ADMIN)
    check_target(url)  # may wait for a resolver, so before anything is locked
    chosen = _checked(DEFAULT_EVENTS if events is None else events)
    with transaction.atomic():
        actor.account.hold_names(actor.account.pk)
        if WebhookEndpoint.objects.filter(account=actor.account).count() >= MAX_ENDPOINTS:
            raise ModelValidationError(
                f"An account has {MAX_ENDPOINTS} webhooks at most. Remove one that is not needed any more."
            )
        made = WebhookEndpoint.objects.create(
            account=actor.account,
            end_user=end_user(actor.account, user_id),
            url=url,
            events=chosen,
            secret=_new_secret(),
        )
        _note(actor, "webhook.created", made)
    return made


def change(actor: Actor, endpoint_id: int, wanted: Change) -> WebhookEndpoint:
    """Change an endpoint; with `rotate_secret` it gets a new secret, and the old one signs nothing any more.

    What waits for an endpoint that is switched off is given up. Raises NotAllowed, NotFound, EgressRefused,
    ModelValidationError.
    """
    actor.require(Role.ADMIN)
    access.get(actor, WebhookEndpoint.objects.all(), pk=endpoint_id)
    if wanted.url is not None:
        check_target(wanted.url)
    chosen = None if wanted.events is None else _checked(wanted.events)
    with transaction.atomic():
        row = _held(actor, endpoint_id)
        row.url = row.url if wanted.url is None else wanted.url
        row.events = row.events if chosen is None else chosen
        row.active = row.active if wanted.active is None else wanted.active
        row.secret = _new_secret() if wanted.rotate_secret else row.secret
        row.save()
        if not row.active:
            _give_up_waiting(row)
        _note(actor, "webhook.changed", row, secret_rotated=wanted.rotate_secret)
    return row


def remove(actor: Actor, endpoint_id: int) -> None:
    """Remove an endpoint with its deliveries. Raises NotAllowed, NotFound.

    First it is switched off, with a note in the ledger; then the row goes, by itself. Together they could wait for a
    run that writes a delivery, while that run waits for the ledger.
    """
    actor.require(Role.ADMIN)
    with transaction.atomic():
        row = _held(actor, endpoint_id)
        row.active = False
        row.save(update_fields=["active", "updated_at"])
        _note(actor, "webhook.removed", row)
    row.delete()


def masked(secret: str) -> str:
    """What is shown of a secret after it was made."""
    return f"{secret[:4]}..."


def _checked(events: Sequence[str]) -> list[str]:
    """The events once each, in the order of the words. Raises ModelValidationError for one that there is not."""
    known = [event.value for event in WebhookEvent]
    for number, event in enumerate(events):
        if event not in known:
            message = f"There is no event {event!r}. Use {', '.join(known)}."
            fields = [{"path": ["events", number], "message": message}]
            raise ModelValidationError(message, details={"fields": fields})
    return [event for event in known if event in events]


def _new_secret() -> str:
    return secrets.token_hex(32)


def _held(actor: Actor, endpoint_id: int) -> WebhookEndpoint:
    """The endpoint, which nobody else changes meanwhile; runs go on writing deliveries for it."""
    rows = WebhookEndpoint.objects.select_for_update(of=("self",), no_key=True).select_related("end_user")
    return access.get(actor, rows, pk=endpoint_id)


def _give_up_waiting(row: WebhookEndpoint) -> None:
    WebhookDelivery.objects.filter(endpoint=row, status=DeliveryStatus.PENDING.value).update(
        status=DeliveryStatus.FAILED.value, next_retry_at=None, response_body=SWITCHED_OFF
    )


def _note(actor: Actor, action: str, row: WebhookEndpoint, **more: Any) -> None:
    facts = {
        "url": redact_urls(row.url),
        "events": row.events,
        "active": row.active,
        "user_id": row.end_user.user_id if row.end_user else None,
    }
    audit.note(actor.account, actor.user, action, f"webhook {row.pk}", {**facts, **more})
