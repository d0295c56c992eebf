"""Runs, their turns, and the journal of steps: everything that a worker needs to go on.

The run row is the truth about who may act (lease and fence, design section 6); the journal is complete enough
that the next step is a pure function of it (design section 2).
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from runs.models.account import Account, EndUser
from runs.models.agent import Agent, Task
from runs.models.base import one_of, optional_word_field, word_field
from runs.models.exact import ExactJSON, ExactText
from runs.models.host import HOST_LENGTH
from runs.models.server import Server
from runs.run_states import CallPhase, HumanInput, Outcome, PermissionMode, TurnStatus
from runs.steps import StepKind

LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
"""`lease_until` of a free lease: never null, so that "expired" is one comparison."""


class RunQuerySet(models.QuerySet["Run"]):
    def due(self, now: dt.datetime) -> RunQuerySet:
        """Runs that a wake has reached and that nobody holds: what a sweep must enqueue."""
        return self.filter(~Q(wake_seq=F("seen_seq")), lease_until__lte=now)

    def sleepers(self, now: dt.datetime) -> RunQuerySet:
        """Runs whose sleep is over."""
        return self.filter(next_at__lte=now, account__closed_at__isnull=True)

    def live(self) -> RunQuerySet:
        return self.exclude(status=TurnStatus.FINISHED.value)


class Run(models.Model):
    """One agent working on one message, over any number of turns."""

    account = models.ForeignKey(
        Account, on_delete=models.CASCADE, related_name="runs", db_index=False
    )  # the index of the list has it first
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs")
    task = models.ForeignKey(Task, null=True, blank=True, on_delete=models.SET_NULL, related_name="runs")
    message = ExactText()
    end_user = models.ForeignKey(
        EndUser, null=True, blank=True, on_delete=models.PROTECT, related_name="runs"
    )
    mode = word_field(PermissionMode, default=PermissionMode.AUTONOMOUS)
    human_input = word_field(HumanInput, default=HumanInput.FAIL)
    tools = ExactJSON(null=True, blank=True)
    """Selection of the caller: list of "server" or "server:tool"; null means everything the agent has."""
    plan_approved = models.BooleanField(default=False)
    metadata = ExactJSON(default=dict, blank=True)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="children"
    )
    parent_step = models.OneToOneField(
        "Step", null=True, blank=True, on_delete=models.SET_NULL, related_name="child_run"
    )
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="runs_started",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    status = word_field(TurnStatus, default=TurnStatus.CREATED)
    """Of the oldest unfinished turn, else of the latest; kept by `runs.control.sync_status` alone."""
    outcome = optional_word_field(Outcome)
    output = ExactText(null=True, blank=True)
    error = ExactText(null=True, blank=True)
    error_code = models.CharField(max_length=60, null=True, blank=True)

    wake_seq = models.PositiveBigIntegerField(default=0)
    seen_seq = models.PositiveBigIntegerField(default=0)
    next_at = models.DateTimeField(null=True, blank=True)
    pin = models.CharField(max_length=HOST_LENGTH, null=True, blank=True)
    """The host that keeps a session of this run, which no other one can go on with; see `runs.hosts`."""
    lease_owner = models.CharField(max_length=80, null=True, blank=True)
    lease_token = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(default=LONG_AGO)

    event_seq = models.PositiveIntegerField(default=0)
    event_head = models.CharField(max_length=80, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("run", "mode", PermissionMode),
            one_of("run", "human_input", HumanInput),
            one_of("run", "status", TurnStatus),
            one_of("run", "outcome", Outcome, null=True),
            models.CheckConstraint(
                condition=Q(status="finished", outcome__isnull=False)
                | ~Q(status="finished") & Q(outcome__isnull=True),
                name="run_finished_has_outcome",
            ),
            models.CheckConstraint(condition=Q(seen_seq__lte=F("wake_seq")), name="run_seen_not_ahead"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["lease_until"], condition=~Q(wake_seq=F("seen_seq")), name="run_due"),
            models.Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="run_sleeping"),
            models.Index(fields=["pin"], condition=Q(pin__isnull=False), name="run_pinned"),
            models.Index(fields=["account", "-id"], name="run_newest"),
            models.Index(fields=["account", "status"], name="run_by_status"),
            models.Index(
                fields=["account", "-id"], condition=Q(end_user__isnull=True), name="run_newest_of_account"
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"


class Turn(models.Model):
    """The M3 execution: create and every reply open one. It freezes what it started with."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="turns", db_index=False
    )  # a constraint's index begins with it
    index = models.PositiveIntegerField()
    message = ExactText()
    harness = models.CharField(max_length=32)
    definition = ExactJSON(default=dict)
    tools = ExactJSON(null=True, blank=True)
    tools_approve = models.BooleanField(default=False)
    """True only for M3 submissions: the selection approves what it names (C48)."""
    planned = ExactJSON(default=list)
    """Answers that the submission gave in advance, as entries of `runs.planned`."""
    bindings = ExactJSON(default=dict)
    """{server name: {"server_id", "identity", "tools": {tool name: digest}}} as frozen at the start."""
    status = word_field(TurnStatus, default=TurnStatus.CREATED)
    outcome = optional_word_field(Outcome)
    output = ExactText(null=True, blank=True)
    error = ExactText(null=True, blank=True)
    error_code = models.CharField(max_length=60, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "index"], name="turn_index_once"),
            one_of("turn", "status", TurnStatus),
            one_of("turn", "outcome", Outcome, null=True),
            models.CheckConstraint(
                condition=Q(status="finished", outcome__isnull=False, finished_at__isnull=False)
                | ~Q(status="finished") & Q(outcome__isnull=True, finished_at__isnull=True),
                name="turn_finished_has_outcome",
            ),
        ]
        ordering: ClassVar[list[str]] = ["index"]

    def __str__(self) -> str:
        return f"turn {self.index} of run {self.run_id}"


class Step(models.Model):
    """One line of the journal. `result` is null while the step is open."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="steps", db_index=False
    )  # a constraint's index begins with it
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="steps", db_index=False)  # too
    seq = models.PositiveIntegerField()
    kind = word_field(StepKind)
    path = models.CharField(max_length=200)
    bind = models.CharField(max_length=100, null=True, blank=True)
    required = models.BooleanField(default=False)
    params = ExactJSON(default=dict)
    """What was proposed, kind by kind: a text, questions, a plan, a target with its arguments."""
    result = ExactJSON(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["run", "seq"], name="step_seq_once"),
            models.UniqueConstraint(fields=["turn", "path"], name="step_path_once"),
            one_of("step", "kind", StepKind),
        ]
        ordering: ClassVar[list[str]] = ["seq"]

    def __str__(self) -> str:
        return f"step {self.seq} of run {self.run_id}"


class ToolCall(models.Model):
    """The part of a Step that is an operation on an MCP server (or a local tool).

    `phase` is the write-ahead journal: `sent` is committed before the request leaves, the raw result right after
    it arrives, so that "was it made?" always has a truthful answer, and `unknown` where it has not.
    """

    step = models.OneToOneField(Step, on_delete=models.CASCADE, related_name="call", primary_key=True)
    server = models.ForeignKey(Server, null=True, blank=True, on_delete=models.SET_NULL, related_name="calls")
    server_name = models.CharField(max_length=60)
    operation = models.CharField(max_length=10)
    """tool, prompt or resource."""
    name = models.CharField(max_length=2000)
    asked = ExactJSON(default=dict)
    asked_digest = models.CharField(max_length=80)
    edited = ExactJSON(null=True, blank=True)
    executed = ExactJSON(null=True, blank=True)
    executed_digest = models.CharField(max_length=80, blank=True)
    definition_digest = models.CharField(max_length=80, blank=True)
    phase = word_field(CallPhase, default=CallPhase.PREPARED)
    allowed = models.BooleanField(default=False)
    """A permission to make the next attempt is held; consumed in the transaction that marks it sent."""
    verdict = ExactJSON(default=dict)
    """The gate's last word: effect, reason, rule."""
    attempts = models.PositiveIntegerField(default=0)
    leg = models.PositiveIntegerField(default=0)
    restarts = models.PositiveIntegerField(default=0)
    wire = ExactJSON(default=dict)
    """Protocol state between legs: request_state, JSON-RPC ids, saved session facts."""
    fence = models.PositiveBigIntegerField(default=0)
    raw_result = ExactJSON(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("call", "phase", CallPhase),
            models.CheckConstraint(
                condition=Q(operation__in=["tool", "prompt", "resource"]), name="call_operation_known"
            ),
        ]

    def __str__(self) -> str:
        return self.full_name

    @property
    def full_name(self) -> str:
        return f"{self.server_name}:{self.name}"

    @property
    def arguments(self) -> dict[str, object]:
        """What will be or was sent: the person's edit if there is one, else what the agent asked for."""
        chosen = self.edited if self.edited is not None else self.asked
        return dict(chosen)
