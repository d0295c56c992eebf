"""What the API takes and shows of webhooks (m8tes-http 2 and 7)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from runs.api.fields import Flag, Text
from runs.models import WebhookDelivery, WebhookEndpoint
from runs.webhooks import endpoints

MAX_EVENTS = 50
"""Names that one list of events may hold; there are fewer."""


class WebhookShape(serializers.Serializer[WebhookEndpoint]):
    """An endpoint. Of its secret only the beginning is shown, except by `NewWebhookShape`."""

    id = serializers.IntegerField(source="pk")
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    secret = serializers.SerializerMethodField()
    active = serializers.BooleanField()
    user_id = serializers.CharField(source="end_user.user_id", allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_secret(self, row: WebhookEndpoint) -> str:
        return endpoints.masked(row.secret)


class NewWebhookShape(WebhookShape):
    """An endpoint whose secret was made just now: the one time that it is shown in full."""

    def get_secret(self, row: WebhookEndpoint) -> str:
        return str(row.secret)


class DeliveryShape(serializers.Serializer[WebhookDelivery]):
    """What was sent, or is to be, and what came of it."""

    id = serializers.IntegerField(source="pk")
    webhook_endpoint_id = serializers.IntegerField(source="endpoint_id")
    event_type = serializers.CharField()
    event_id = serializers.CharField()
    run_id = serializers.IntegerField()
    status = serializers.CharField()
    response_status_code = serializers.IntegerField(allow_null=True)
    response_body = serializers.CharField()
    attempts = serializers.IntegerField()
    next_retry_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class _Events(serializers.ListField):
    def __init__(self, **options: Any) -> None:
        super().__init__(child=Text(allow_blank=False, max_length=60), max_length=MAX_EVENTS, **options)


class NewWebhook(serializers.Serializer[Any]):
    """The body that adds an endpoint. Left out, `events` are the three ways in which a run ends."""

    url = Text(allow_blank=False)
    events = _Events(required=False, allow_null=True, default=None)
    user_id = Text(required=False, allow_null=True, default=None)


class WebhookChange(serializers.Serializer[Any]):
    """The body that changes an endpoint; what is left out or null stays."""

    url = Text(required=False, allow_null=True, allow_blank=False, default=None)
    events = _Events(required=False, allow_null=True, default=None)
    active = Flag(required=False, allow_null=True, default=None)
    rotate_secret = Flag(required=False, default=False)
