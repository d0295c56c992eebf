"""What was changed in an account, in order: append-only and hash-chained per account, with the heads of its runs."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from runs.models.account import Account
from runs.models.exact import ExactJSON


class Ledger(models.Model):
    """The end of an account's ledger. Whoever appends locks this row, so that the chain has no gaps or forks."""

    account = models.OneToOneField(Account, on_delete=models.CASCADE, primary_key=True, related_name="ledger")
    seq = models.PositiveBigIntegerField(default=0)
    head = models.CharField(max_length=80, blank=True)

    def __str__(self) -> str:
        return f"{self.account_id}: {self.seq}"


class LedgerEntry(models.Model):
    """One change. `hash` covers the row and `previous`; it outlives what it tells of. Written by `runs.audit` alone."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="ledger_entries")
    seq = models.PositiveBigIntegerField()
    action = models.CharField(max_length=60)
    """What was done, like `policy.revoked`."""
    subject = models.CharField(max_length=120)
    """To what, like `policy 12`: a kind and an id, which may name nothing any more."""
    facts = ExactJSON(default=dict)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="ledger_entries",
    )
    """A convenience, and no part of the proof: it is emptied with the user."""
    actor_name = models.CharField(max_length=150)
    """Who, kept as words."""
    at = models.DateTimeField()
    previous = models.CharField(max_length=80, blank=True)
    hash = models.CharField(max_length=80)

    class Meta:
        verbose_name_plural = "ledger entries"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["account", "seq"], name="ledger_seq_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["account", "subject", "seq"], name="ledger_by_subject"),
        ]
        ordering: ClassVar[list[str]] = ["account_id", "seq"]

    def __str__(self) -> str:
        return f"{self.action} {self.subject} ({self.account_id}/{self.seq})"
