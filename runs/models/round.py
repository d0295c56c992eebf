"""Every pause is a Round (design section 1)."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Least

from runs.models.account import Account
from runs.models.base import one_of, optional_word_field, word_field
from runs.models.exact import ExactJSON, ExactText
from runs.models.run import Run, Step, Turn
from runs.round_states import RoundKind, RoundOutcome, RoundStatus

UNRESOLVED = [
    RoundStatus.PENDING.value,
    RoundStatus.RESPONSE_VALIDATED.value,
    RoundStatus.DELIVERY_STARTED.value,
    RoundStatus.DELIVERED.value,
]

ENDS_AT = Least(Coalesce("deadline", "continue_at"), Coalesce("continue_at", "deadline"))
"""When a pause ends if nobody answers, for the database. Of two values the least where there are both: SQLite and
PostgreSQL disagree about the least of a value and null."""


def new_round_id() -> str:
    return uuid.uuid4().hex


class RoundQuerySet(models.QuerySet["Round"]):
    def pending(self) -> RoundQuerySet:
        return self.filter(status=RoundStatus.PENDING.value)

    def overdue(self, now: dt.datetime) -> RoundQuerySet:
        return self.pending().filter(deadline__lte=now, account__closed_at__isnull=True)

    def going_on(self, now: dt.datetime) -> RoundQuerySet:
        """Questions whose recommended answer is due."""
        return self.pending().filter(continue_at__lte=now, account__closed_at__isnull=True)

    def for_cards(self) -> RoundQuerySet:
        """With everything that a card or a list row shows, in one query."""
        return self.select_related(
            "run__agent", "run__end_user", "run__account", "turn", "step__call__server", "decided_by"
        )


class Round(models.Model):
    """Keyed requests to a person, their answers, and how far the answers have travelled.

    `requests` is {key: {"request_key", "mode": "form" | "url", "message", "requested_schema" | "url", ...}};
    `responses` is {key: {"action", "content"?}} with the same keys. Kind-specific facts that a card shows but that
    are not part of the question stand in `context`.
    """

    id = models.CharField(primary_key=True, max_length=64, default=new_round_id, editable=False)
    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, related_name="rounds", db_index=False
    )  # the index of the list has it first
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="rounds", db_index=False
    )  # as for the account: another index begins with it
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="rounds", db_index=False)  # too
    step = models.ForeignKey(Step, null=True, blank=True, on_delete=models.CASCADE, related_name="rounds")
    """Null: a program opened the round through the store; no line of the journal stands behind it."""
    kind = word_field(RoundKind)
    logical_operation_id = models.CharField(max_length=200)
    round_index = models.PositiveIntegerField()
    round_limit = models.PositiveIntegerField()
    server_name = models.CharField(max_length=60, blank=True)
    operation_kind = models.CharField(max_length=10, blank=True)
    operation_name = models.CharField(max_length=2000, blank=True)
    operation_parameters = ExactJSON(default=dict, blank=True)
    request_state = ExactText(null=True, blank=True)
    requests = ExactJSON()
    context = ExactJSON(default=dict, blank=True)
    shown_digest = models.CharField(max_length=80, blank=True)
    """Digest of what a card must show in full (arguments, plan text); posted back with the decision (R12)."""
    responses = ExactJSON(null=True, blank=True)
    drafts = ExactJSON(default=dict, blank=True)
    status = word_field(RoundStatus, default=RoundStatus.PENDING)
    outcome = optional_word_field(RoundOutcome)
    held = models.BooleanField(default=False)
    """A live session waits on it; only its worker may deliver."""
    deadline = models.DateTimeField(null=True, blank=True)
    """When the pause and its turn end as timed out."""
    continue_at = models.DateTimeField(null=True, blank=True)
    """When a question takes its recommended answer and goes on; null: it waits (m8tes-http 4.5)."""
    version = models.PositiveIntegerField(default=1)

    lease_owner = models.CharField(max_length=80)
    lease_token = models.CharField(max_length=80)
    lease_expires_at = models.DateTimeField()
    response_idempotency_key = models.CharField(max_length=200, null=True, blank=True)
    delivery_idempotency_key = models.CharField(max_length=200, null=True, blank=True)
    harness_session_id = models.CharField(max_length=200, null=True, blank=True)
    native_resume_token = ExactText(null=True, blank=True)
    session_id = models.CharField(max_length=200, null=True, blank=True)
    harness_turn_id = models.CharField(max_length=200, null=True, blank=True)
    """What the harness of a program calls its turn (`turn_id` in M3); no turn of ours."""
    delivery_attempts = models.PositiveIntegerField(default=0)

    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="decisions"
    )
    decided_via = models.CharField(max_length=20, blank=True)
    """page, api, rule, mode, recommended, plan (answers given in advance), deadline or worker."""
    note = ExactText(blank=True)
    """The person's words to the agent (deny feedback, revise text)."""
    failure_code = models.CharField(max_length=60, null=True, blank=True)
    failure_message = ExactText(null=True, blank=True)

    asked_at = models.DateTimeField(null=True, blank=True)
    """When the server asked, as the program that opened the round states it; null: when it was stored."""
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    response_validated_at = models.DateTimeField(null=True, blank=True)
    delivery_started_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)

    objects = RoundQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("round", "kind", RoundKind),
            one_of("round", "status", RoundStatus),
            one_of("round", "outcome", RoundOutcome, null=True),
            models.UniqueConstraint(
                fields=["turn", "logical_operation_id", "round_index"], name="round_index_once_per_operation"
            ),
            models.UniqueConstraint(
                fields=["turn", "logical_operation_id"],
                condition=Q(status="pending"),
                name="round_one_open_per_operation",
            ),
            models.CheckConstraint(
                condition=Q(round_index__lt=F("round_limit")), name="round_index_below_limit"
            ),
            models.CheckConstraint(
                condition=Q(step__isnull=False) | Q(kind=RoundKind.ELICITATION.value),
                name="round_without_step_is_elicitation",
            ),
            models.CheckConstraint(
                condition=Q(continue_at__isnull=True) | Q(kind=RoundKind.QUESTION.value),
                name="round_only_questions_go_on",
            ),
            models.CheckConstraint(
                condition=Q(status="failed", failure_code__isnull=False)
                | ~Q(status="failed") & Q(failure_code__isnull=True),
                name="round_failed_has_code",
            ),
            models.CheckConstraint(
                condition=Q(status="pending", outcome__isnull=True)
                | ~Q(status="pending") & Q(outcome__isnull=False),
                name="round_ended_has_outcome",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "failed"]) | Q(responses__isnull=False),
                name="round_answered_has_responses",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["account", "created_at", "id"], name="round_of_account"),
            # What waits is counted all the time; SQLite needs every column in the index to do it there alone.
            models.Index(
                fields=["account", "status", "kind"], condition=Q(status="pending"), name="round_waiting"
            ),
            # The order of the list.
            models.Index(
                "account", ENDS_AT, "created_at", "id", condition=Q(status="pending"), name="round_urgency"
            ),
            models.Index(
                fields=["deadline"],
                condition=Q(status="pending", deadline__isnull=False),
                name="round_deadlines",
            ),
            models.Index(
                fields=["continue_at"],
                condition=Q(status="pending", continue_at__isnull=False),
                name="round_going_on",
            ),
            models.Index(fields=["run", "status"], name="round_of_run"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} round {self.pk}"

    @property
    def ends_at(self) -> dt.datetime | None:
        """When it ends if nobody answers, in one way or the other."""
        return min((at for at in (self.deadline, self.continue_at) if at is not None), default=None)

    @property
    def own_step(self) -> Step:
        """The step of the journal that waits for this; every kind but an elicitation has one."""
        if self.step is None:
            raise ValueError(f"{self} was opened by a program; no step stands behind it.")
        return self.step
