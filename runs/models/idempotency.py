"""Keys under which callers send what must happen once (m8tes-http 1.10)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from runs.models.account import Account
from runs.models.run import Turn


class IdempotencyKey(models.Model):
    """The first request under a key of an account, and the turn that it opened.

    Written by `runs.idempotency` alone, in the transaction that opens the turn.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="idempotency_keys")
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=80)
    """Of method, address and body."""
    turn = models.ForeignKey(Turn, null=True, on_delete=models.CASCADE, related_name="idempotency_keys")
    """Null only inside that transaction, which stores the key first so that a second request waits for it."""
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return self.key
