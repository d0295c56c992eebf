"""One standing rule: what it says and was used for, its history, its end and note, and putting it out of force."""

from __future__ import annotations

import datetime as dt

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from approvals import policies
from approvals.facts import Effect
from approvals.models import Policy
from approvals.policy_forms import EndForm, SuspendForm
from approvals.policy_history import history_of
from approvals.policy_lists import line_of, with_names
from approvals.rules import end_of
from runs import access
from runs.access import Actor, visible
from runs.errors import M3Error, NotFound
from runs.models import Role
from runs.views.base import page, show_mistakes


@page()
def policy_detail(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    """A rule that is gone shows its history, for links that are older than its end (R7)."""
    policy = visible(actor, with_names(Policy.objects.filter(pk=policy_id))).first()
    if policy is not None:
        return _detail(request, actor, policy)
    told = history_of(actor, policy_id)
    if not told:
        raise NotFound(f"There is no such policy in {actor.account.name}.")
    context = {"section": "policies", "policy_id": policy_id, "told": told}
    return render(request, "policies/gone.html", context, status=404)


@page("POST", role=Role.ADMIN)
def policy_edit(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    """Set the end and the note."""
    policy = _policy(actor, policy_id)
    form = EndForm(request.POST, policy)
    if form.is_valid():
        try:
            saved = policies.edit(
                actor, policy_id, expires_at=_end(form, policy), note=form.cleaned_data["note"]
            )
        except M3Error as error:
            show_mistakes(form, error)
        else:
            messages.success(request, f"Saved: {policies.rule_sentence(saved)}")
            return redirect("policy-detail", policy_id)
    return _detail(request, actor, policy, end_form=form)


@page("POST", role=Role.ADMIN)
def policy_suspend(request: HttpRequest, actor: Actor, policy_id: int) -> HttpResponse:
    """Put an allow out of force until it is renewed."""
    policy = _policy(actor, policy_id)
    form = SuspendForm(request.POST)
    if form.is_valid():
        try:
            policies.suspend(actor, policy_id, form.cleaned_data["reason"])
        except M3Error as error:
            show_mistakes(form, error)
        else:
            messages.success(
                request, "Suspended. Such calls ask from now on, until an admin renews the rule."
            )
            return redirect("policy-detail", policy_id)
    return _detail(request, actor, policy, suspend_form=form)


def _policy(actor: Actor, policy_id: int) -> Policy:
    return access.get(actor, with_names(Policy.objects.all()), pk=policy_id)


def _detail(
    request: HttpRequest,
    actor: Actor,
    policy: Policy,
    *,
    end_form: EndForm | None = None,
    suspend_form: SuspendForm | None = None,
) -> HttpResponse:
    wrong = end_form or suspend_form
    line = line_of(actor, policy)
    context = {
        "section": "policies",
        "line": line,
        "policy": policy,
        "told": history_of(actor, policy.pk),
        "end_form": end_form or EndForm(None, policy),
        "suspend_form": suspend_form or SuspendForm(),
        "wrong": wrong,
        "may_edit": actor.can_administer and not line.expired,
        "may_suspend": policy.effect == Effect.ALLOW and not policy.suspended_reason,
    }
    return render(request, "policies/detail.html", context, status=422 if wrong else 200)


def _end(form: EndForm, policy: Policy) -> dt.datetime | None:
    end = form.cleaned_data["end"]
    if end == EndForm.KEEP:
        return policy.expires_at
    return end_of(form.cleaned_data["days"]) if end == EndForm.DAYS else None
