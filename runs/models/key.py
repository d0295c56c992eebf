"""Keys with which programs call the API."""

from __future__ import annotations

import datetime as dt
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from runs.models.account import Account, Role, User
from runs.models.base import one_of, word_field


class ApiKey(models.Model):
    """A program that may act in one account. Only a digest of the key is kept, so it is shown once.

    `user` is the key as somebody who acts: what it decides is recorded under a name of its own, and nobody can sign
    in with it. `role` says what it may do; a viewer is a read-only key.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="api_keys")
    user = models.OneToOneField(User, on_delete=models.PROTECT, related_name="api_key")
    name = models.CharField(max_length=60)
    role = word_field(Role)
    public_id = models.CharField(max_length=16, unique=True)
    """The part of the key that finds this row; it is no secret and is shown in the list."""
    secret_digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="keys_made"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("api_key", "role", Role),
            models.UniqueConstraint(
                fields=["account", "name"],
                condition=Q(revoked_at__isnull=True),
                name="api_key_name_once_while_valid",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id})"

    def in_force(self, now: dt.datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)
