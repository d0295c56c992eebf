"""Standing decisions: what may run without asking again, what must always ask, what never runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.condition_shape import match_keys
from approvals.facts import Effect, Scope
from runs.models import Account, EndUser, Run, Server
from runs.models.base import one_of, word_field
from runs.models.exact import ExactJSON


class Source(StrEnum):
    RUN_APPROVAL = "run_approval"
    API = "api"


class Change(StrEnum):
    """What can be done to a rule."""

    MADE = "made"
    RENEWED = "renewed"
    EDITED = "edited"
    SUSPENDED = "suspended"
    REVOKED = "revoked"


UNUSED_AFTER: Final = dt.timedelta(days=30)
"""A rule that nothing has used for so long is marked, because it may not be needed any more."""


class PolicyQuerySet(models.QuerySet["Policy"]):
    def standing(self) -> PolicyQuerySet:
        """What the policies page and `permissions.list` show: everything but what one run remembers."""
        return self.exclude(scope=Scope.RUN.value)

    def in_force(self, now: dt.datetime) -> PolicyQuerySet:
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))

    def unused(self, now: dt.datetime) -> PolicyQuerySet:
        """Standing rules that have decided nothing for UNUSED_AFTER, and are at least that old."""
        since = now - UNUSED_AFTER
        idle = Q(last_used_at__lte=since) | Q(last_used_at__isnull=True)
        return self.standing().filter(idle, created_at__lte=since)

    def candidates(
        self,
        *,
        account: int,
        end_user: int | None,
        run: int | None,
        target: tuple[str, str],
        arguments: Mapping[str, Any],
        now: dt.datetime,
    ) -> PolicyQuerySet:
        """Rows that could decide a call of `target` (server, tool); `permission.decide` has the last word.

        Every owner's rules are found by an index that ends in the match key, so that neither the rules of others nor
        those about exactly other arguments are read, however many there are.
        """
        server, tool = target
        about = Q(target_server=server, target_tool__in=["", tool], match_key__in=match_keys(arguments))
        found = Q(about, account=account, scope=Scope.ACCOUNT.value)
        if end_user is not None:
            found |= Q(about, end_user=end_user, scope=Scope.USER.value)
        if run is not None:
            found |= Q(about, run=run, scope=Scope.RUN.value)
        return self.in_force(now).filter(found).select_related("end_user")


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
    """Which arguments it is about, in the form of `approvals.condition_shape`; null is all."""
    condition_digest = models.CharField(max_length=80, blank=True)
    match_key = models.CharField(max_length=80, blank=True)
    """How it is found for a call: `condition_shape.match_key` of the condition."""
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
            models.Index(
                fields=["account", "scope", "target_server", "target_tool", "match_key"],
                name="policy_match_account",
            ),
            models.Index(
                fields=["end_user", "target_server", "target_tool", "match_key"], name="policy_match_user"
            ),
            models.Index(
                fields=["run", "target_server", "target_tool", "match_key"], name="policy_match_run"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.effect} {self.target}"

    @property
    def target(self) -> str:
        return f"{self.target_server}:{self.target_tool}" if self.target_tool else self.target_server
