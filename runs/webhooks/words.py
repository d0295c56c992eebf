"""The events of webhooks, and the signature of what is sent (m8tes-http 7). Plain module."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from runs.round_states import RoundKind
from runs.run_states import ApiStatus, Outcome


class WebhookEvent(StrEnum):
    """What an endpoint can ask to be told."""

    STARTED = "run.started"
    COMPLETED = "run.completed"
    FAILED = "run.failed"
    CANCELLED = "run.cancelled"
    AWAITING_INPUT = "run.awaiting_input"
    MESSAGE_RECEIVED = "run.message_received"
    MESSAGE_CANCELLED = "run.message_cancelled"


DEFAULT_EVENTS: Final = (WebhookEvent.COMPLETED, WebhookEvent.FAILED, WebhookEvent.CANCELLED)
"""What an endpoint is told that asks for nothing in particular."""

TOLD: Final[Mapping[str, WebhookEvent]] = {
    "run.started": WebhookEvent.STARTED,
    "run.message": WebhookEvent.MESSAGE_RECEIVED,
    **{f"{kind.value}.request": WebhookEvent.AWAITING_INPUT for kind in RoundKind},
    f"run.{Outcome.COMPLETED.value}": WebhookEvent.COMPLETED,
    f"run.{Outcome.CANCELLED.value}": WebhookEvent.CANCELLED,
    f"run.{Outcome.FAILED.value}": WebhookEvent.FAILED,
    f"run.{Outcome.TIMED_OUT.value}": WebhookEvent.FAILED,
    f"run.{Outcome.INTERRUPTED.value}": WebhookEvent.FAILED,
}
"""Of which events in the history an endpoint can be told, and as what."""

STATUS: Final[Mapping[WebhookEvent, ApiStatus]] = {
    WebhookEvent.STARTED: ApiStatus.RUNNING,
    WebhookEvent.MESSAGE_RECEIVED: ApiStatus.RUNNING,
    WebhookEvent.AWAITING_INPUT: ApiStatus.AWAITING_APPROVAL,
    WebhookEvent.COMPLETED: ApiStatus.COMPLETED,
    WebhookEvent.FAILED: ApiStatus.FAILED,
    WebhookEvent.CANCELLED: ApiStatus.CANCELLED,
    WebhookEvent.MESSAGE_CANCELLED: ApiStatus.CANCELLED,
}
"""The status that each event tells of. The run's own may be another when it is read: messages can wait behind it."""


def signed_headers(secret: str, event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers by which a receiver knows that a body came from us, when (seconds since 1970), and which it is."""
    message = b"%s.%d.%s" % (event_id.encode(), timestamp, body)
    signature = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
    return {
        "Webhook-Id": event_id,
        "Webhook-Timestamp": str(timestamp),
        "Webhook-Signature": f"v1={signature}",
    }
