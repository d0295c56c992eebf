"""Standing rules as sentences, to look through and to revoke (R27); and the mode of a run."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from approvals import pins, policies
from approvals.decisions import switch_mode
from approvals.facts import Effect
from approvals.models import Policy, Source
from runs.access import Actor, visible
from runs.errors import NotFound
from runs.models import Role
from runs.views.base import filters, number, page

PAGE = 50


@dataclass(frozen=True, kw_only=True)
class Line:
    """One rule as the page shows it; `revocable` by whoever looks.

    `changed` is how many tools are others than the rule was made for, which suspends an allow for them (R28).
    """

    policy: Policy
    sentence: str
    source: str
    expired: bool
    revocable: bool
    changed: int = 0


_SOURCES = {Source.RUN_APPROVAL.value: "remembered from an approval", Source.API.value: "made by an admin"}


@page()
def policy_list(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Newest first, paged by id; what a single run remembers is on that run's page."""
    chosen = filters(request, "q", "effect", "user", "before")
    rows = list(_filtered(actor, chosen).order_by("-pk")[: PAGE + 1])
    now = timezone.now()
    drifted = pins.changes_of(actor.account.pk, [row for row in rows if row.effect == Effect.ALLOW])
    context = {
        "section": "policies",
        "lines": [_line(actor, row, now, changed=len(drifted.get(row.pk, ()))) for row in rows[:PAGE]],
        "next_before": rows[PAGE - 1].pk if len(rows) > PAGE else None,
        "effects": [(Effect.ALLOW.value, "Allow"), (Effect.ASK.value, "Ask"), (Effect.DENY.value, "Deny")],
        "chosen": chosen,
        "filtered": any(chosen.values()),
    }
    return render(request, "policies/list.html", context)


@page("GET", "HEAD", "POST", role=Role.OPERATOR)
def policy_revoke(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    """Reading shows the rule and asks, posting deletes it. A rule that is gone already says so (R7)."""
    policy = visible(actor, _with_names(Policy.objects.filter(pk=policy_id))).first()
    if policy is None:
        raise NotFound("This policy is not there any more. It was revoked, or what it was about is gone.")
    if request.method != "POST":
        line = _line(actor, policy, timezone.now())
        return render(request, "policies/revoke.html", {"section": "policies", "line": line})
    sentence = policies.rule_sentence(policy)
    policies.revoke(actor, policy.pk)
    messages.success(request, f"Revoked: {sentence} The next such call is asked about again.")
    return redirect("run-detail", policy.run_id) if policy.run_id else redirect("policy-list")


@page("POST", role=Role.OPERATOR)
def run_mode(request: HttpRequest, actor: Actor, run_id: int) -> HttpResponse:
    """Switch a run's permission mode; what that means for waiting cards is decided by the service."""
    run = switch_mode(actor, run_id, request.POST.get("mode", ""))
    messages.success(request, f"Run {run.pk} is in the mode {run.mode} now.")
    return redirect("run-detail", run.pk)


def _filtered(actor: Actor, chosen: dict[str, str]) -> QuerySet[Policy]:
    rows = visible(actor, _with_names(Policy.objects.standing()))
    server, colon, tool = chosen["q"].partition(":")
    if colon:
        rows = rows.filter(target_server__icontains=server, target_tool__icontains=tool)
    elif server:
        rows = rows.filter(Q(target_server__icontains=server) | Q(target_tool__icontains=server))
    if chosen["effect"] in list(Effect):
        rows = rows.filter(effect=chosen["effect"])
    if chosen["user"]:
        rows = rows.filter(end_user__user_id=chosen["user"])
    before = number(chosen["before"])
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return rows


def _with_names(rows: QuerySet[Policy]) -> QuerySet[Policy]:
    return rows.select_related("end_user", "created_by", "server")


def _line(actor: Actor, policy: Policy, now: dt.datetime, *, changed: int = 0) -> Line:
    return Line(
        policy=policy,
        sentence=policies.rule_sentence(policy),
        source=_SOURCES[policy.source],
        expired=policy.expires_at is not None and policy.expires_at <= now,
        revocable=actor.can_administer or (actor.can_decide and policy.created_by_id == actor.user.pk),
        changed=changed,
    )
