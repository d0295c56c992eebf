"""What happened, in order: history, outbox, stream and audit at once (design section 2)."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from runs.models.account import Account
from runs.models.exact import ExactJSON
from runs.models.run import Run, Turn


class Event(models.Model):
    """Append-only. `hash` covers the row and `previous`, so a run's history cannot be altered unseen."""

    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, related_name="events", db_index=False
    )  # the index of the list has it first
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="events", db_index=False
    )  # a constraint's index begins with it
    turn = models.ForeignKey(Turn, null=True, blank=True, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    type = models.CharField(max_length=60)
    payload = ExactJSON(default=dict)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="events"
    )
    actor_name = models.CharField(max_length=150)
    """Who did it, kept as words: a user name, "worker", or the rule that decided."""
    at = models.DateTimeField()
    previous = models.CharField(max_length=80, blank=True)
    hash = models.CharField(max_length=80)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "seq"], name="event_seq_once"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["account", "id"], name="event_of_account"),
        ]
        ordering: ClassVar[list[str]] = ["run_id", "seq"]

    def __str__(self) -> str:
        return f"{self.type} ({self.run_id}/{self.seq})"
