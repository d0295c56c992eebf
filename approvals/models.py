"""Standing decisions: what may run without asking again, what must always ask, what never runs."""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.facts import Effect, Scope
from runs.models import Account, EndUser, Run, Server
from runs.models.base import one_of, word_field
from runs.models.exact import ExactJSON


class Source(StrEnum):
    RUN_APPROVAL = "run_approval"
    API = "api"


class PolicyQuerySet(models.QuerySet["Policy"]):
    def standing(self) -> PolicyQuerySet:
        """What the policies page and `permissions.list` show: everything but what one run remembers."""
        return self.exclude(scope=Scope.RUN.value)

    def in_force(self, now: dt.datetime) -> PolicyQuerySet:
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))

    def candidates(self, run: Run, server: str, tool: str, now: dt.datetime) -> PolicyQuerySet:
        """Rows that could decide a call of `server:tool` in `run`; `permission.decide` has the last word."""
        scope = Q(scope=Scope.ACCOUNT.value) | Q(scope=Scope.RUN.value, run=run)
        if run.end_user_id is not None:
            scope |= Q(scope=Scope.USER.value, end_user=run.end_user_id)
        # A rule with a condition on arguments must not act without it, and conditions are not read here yet.
        unconditional = self.in_force(now).filter(condition__isnull=True)
        return unconditional.filter(
            scope, account=run.account_id, target_server=server, target_tool__in=["", tool]
        ).select_related("end_user")


class Policy(models.Model):
    """One rule. Its target is a server or a `server:tool`, no prefixes; the target may precede its server."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="policies")
    effect = word_field(Effect)
    scope = word_field(Scope)
    end_user = models.ForeignKey(
        EndUser, null=True, blank=True, on_delete=models.CASCADE, related_name="policies"
    )
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="remembered")
    target_server = models.CharField(max_length=60)
    target_tool = models.CharField(max_length=200, blank=True)
    condition = ExactJSON(null=True, blank=True)
    condition_digest = models.CharField(max_length=80, blank=True)
    server = models.ForeignKey(
        Server, null=True, blank=True, on_delete=models.SET_NULL, related_name="policies"
    )
    pinned_identity = models.CharField(max_length=80, blank=True)
    pinned_tools = ExactJSON(default=dict, blank=True)
    """{tool name: definition digest} as they were when the rule was made; a changed one suspends it (R28)."""
    source = word_field(Source)
    note = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="policies_made",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    hits = models.PositiveIntegerField(default=0)
    last_used_at = models.DateTimeField(null=True, blank=True)
    suspended_reason = models.CharField(max_length=300, blank=True)

    objects = PolicyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "policies"
        constraints: ClassVar[list[models.BaseConstraint]] = [
            one_of("policy", "effect", Effect),
            one_of("policy", "scope", Scope),
            one_of("policy", "source", Source),
            models.CheckConstraint(
                condition=Q(scope="account", end_user__isnull=True, run__isnull=True)
                | Q(scope="user", end_user__isnull=False, run__isnull=True)
                | Q(scope="run", end_user__isnull=True, run__isnull=False),
                name="policy_scope_names_its_owner",
            ),
            models.UniqueConstraint(
                fields=["account", "target_server", "target_tool", "condition_digest", "effect"],
                condition=Q(scope="account"),
                name="policy_once_per_account",
            ),
            models.UniqueConstraint(
                fields=["end_user", "target_server", "target_tool", "condition_digest", "effect"],
                condition=Q(scope="user"),
                name="policy_once_per_user",
            ),
            models.UniqueConstraint(
                fields=["run", "target_server", "target_tool", "condition_digest", "effect"],
                condition=Q(scope="run"),
                name="policy_once_per_run",
            ),
            models.CheckConstraint(condition=~Q(target_server=""), name="policy_has_target"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["account", "target_server", "target_tool"], name="policy_match"),
        ]

    def __str__(self) -> str:
        return f"{self.effect} {self.target}"

    @property
    def target(self) -> str:
        return f"{self.target_server}:{self.target_tool}" if self.target_tool else self.target_server
