"""A rule and what has changed since it was made: to look at, and for admins to renew (R28)."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from approvals import renewals
from approvals.rules import rule_sentence
from runs.access import Actor, get
from runs.errors import NotFound, StateConflict
from runs.models import Round
from runs.views.base import page


@page("GET", "HEAD", "POST")
def policy_renew(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    """Reading shows every change in full, posting renews the rule for exactly what was shown.

    A card posts here too and names its pause; whoever was shown something else than there is now sees the page.
    """
    if request.method == "POST":
        return _renew(request, actor, policy_id)
    policy, renewal, changed = renewals.shown(actor, policy_id)
    context = {
        "section": "policies",
        "policy": policy,
        "sentence": rule_sentence(policy),
        "renewal": renewal,
        "changes": changed,
    }
    return render(request, "policies/renew.html", context)


def _renew(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    try:
        policy = renewals.renew(actor, policy_id, request.POST.get("token", ""))
    except StateConflict as conflict:
        messages.warning(request, conflict.message)
        return redirect("policy-renew", policy_id)
    messages.success(request, f"Renewed: {rule_sentence(policy)} It holds for what is offered now.")
    try:
        asked = get(actor, Round.objects.all(), pk=request.POST.get("round", ""))
    except NotFound:
        return redirect("policy-detail", policy.pk)
    return redirect("round", asked.pk)
