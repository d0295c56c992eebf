"""Where an account wants to be told of its runs, and what was sent there (m8tes-http 7)."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import ClassVar

from django.db import models
from django.db.models import Q
from encrypted_fields.fields import EncryptedCharField

from runs.models.account import Account, EndUser
from runs.models.base import one_of, word_field
from runs.models.exact import ExactJSON, ExactText
from runs.models.run import Run


class DeliveryStatus(StrEnum):
    """What has become of a delivery."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILED = "failed"


class WebhookEndpoint(models.Model):
    """An address of the embedding application. It hears of runs of exactly its scope: those for its end user, or
    where it has none, those that are for nobody."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="webhooks")
    end_user = models.ForeignKey(
        EndUser, null=True, blank=True, on_delete=models.CASCADE, related_name="webhooks"
    )
    url = models.CharField(max_length=2048)
    events = ExactJSON(default=list)
    """Words of `runs.webhooks.words.WebhookEvent`; none means that it is told nothing."""
    secret = EncryptedCharField(max_length=100)
    """Signs what is sent; shown in full only when it is made."""
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "webhook"

    def __str__(self) -> str:
        return self.url


class DeliveryQuerySet(models.QuerySet["WebhookDelivery"]):
    def due(self, now: dt.datetime) -> DeliveryQuerySet:
        open_ones = self.filter(endpoint__active=True, endpoint__account__closed_at__isnull=True)
        return open_ones.filter(status=DeliveryStatus.PENDING.value, next_retry_at__lte=now)


class WebhookDelivery(models.Model):
    """One event for one endpoint, written in the transaction of what it tells of, so that neither is there alone."""

    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="webhook_deliveries")
    event_type = models.CharField(max_length=40)
    event_id = models.CharField(max_length=64)
    """The same for every endpoint and every repetition, so that a receiver can tell that it knows it."""
    body = ExactText()
    """What is sent, byte for byte; it is ASCII."""
    status = word_field(DeliveryStatus, default=DeliveryStatus.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_retry_at = models.DateTimeField(null=True, blank=True)
    """When it is due; while an attempt is under way, when that one counts as lost."""
    response_status_code = models.PositiveIntegerField(null=True, blank=True)
    response_body = ExactText(blank=True)
    """The beginning of the last answer, or why there was none."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name = "delivery"
        verbose_name_plural = "deliveries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("delivery", "status", DeliveryStatus),
            models.CheckConstraint(
                condition=Q(status="pending", next_retry_at__isnull=False)
                | ~Q(status="pending") & Q(next_retry_at__isnull=True),
                name="delivery_pending_has_a_time",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["next_retry_at"], condition=Q(status="pending"), name="delivery_due"),
            models.Index(fields=["endpoint", "-id"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} ({self.event_id})"
