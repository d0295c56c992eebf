"""Standing rules as sentences, to look through and to revoke (R27); and the mode of a run."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from approvals import policies
from approvals.decisions import switch_mode
from approvals.facts import Effect
from approvals.models import Policy
from approvals.policy_history import history, history_of
from approvals.policy_lists import State, line_of, listed, with_names
from runs.access import Actor, visible
from runs.errors import NotFound
from runs.models import Role
from runs.views.base import filters, number, page

_EFFECTS = [(Effect.ALLOW.value, "Allow"), (Effect.ASK.value, "Ask"), (Effect.DENY.value, "Deny")]


@page()
def policy_list(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Newest first, paged by id; what a single run remembers is on that run's page."""
    chosen = filters(request, "q", "effect", "user", "state", "before")
    lines, next_before = listed(actor, chosen, before=number(chosen["before"]))
    context = {
        "section": "policies",
        "tab": "rules",
        "lines": lines,
        "next_before": next_before,
        "effects": _EFFECTS,
        "states": list(State),
        "chosen": chosen,
        "filtered": any(chosen.values()),
    }
    return render(request, "policies/list.html", context)


@page()
def policy_history(request: HttpRequest, actor: Actor) -> HttpResponse:
    """What was done to rules, newest first; those that are gone included."""
    before = number(filters(request, "before")["before"])
    told, next_before = history(actor, before=before)
    context = {
        "section": "policies",
        "tab": "history",
        "told": told,
        "next_before": next_before,
        "before": before,
    }
    return render(request, "policies/history.html", context)


@page("GET", "HEAD", "POST", role=Role.OPERATOR)
def policy_revoke(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    """Reading shows the rule and asks, posting deletes it. A rule that is gone already says so (R7)."""
    policy = visible(actor, with_names(Policy.objects.filter(pk=policy_id))).first()
    if policy is None:
        ends = [told for told in history_of(actor, policy_id)[:1] if told.gone]
        by = f" {ends[0].who} revoked it: {ends[0].sentence}" if ends else ""
        raise NotFound(
            f"This policy is not there any more. It was revoked, or what it was about is gone.{by}"
        )
    if request.method != "POST":
        context = {"section": "policies", "line": line_of(actor, policy)}
        return render(request, "policies/revoke.html", context)
    sentence = policies.rule_sentence(policy)
    policies.revoke(actor, policy.pk)
    messages.success(request, f"Revoked: {sentence} The next such call is decided without it.")
    return redirect("run-detail", policy.run_id) if policy.run_id else redirect("policy-list")


@page("POST", role=Role.OPERATOR)
def run_mode(request: HttpRequest, actor: Actor, run_id: int) -> HttpResponse:
    """Switch a run's permission mode; what that means for waiting cards is decided by the service."""
    run = switch_mode(actor, run_id, request.POST.get("mode", ""))
    messages.success(request, f"Run {run.pk} is in the mode {run.mode} now.")
    return redirect("run-detail", run.pk)
