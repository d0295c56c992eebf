"""Writing a rule: the form, then the exact rule with its rehearsal, then saving what was shown (R23)."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from approvals import writing
from approvals.models import Policy
from approvals.policy_lists import known_targets
from approvals.rehearsal import UnconfirmedRule
from approvals.rule_form import PolicyForm
from approvals.rules import rule_sentence
from runs.access import Actor, visible
from runs.errors import M3Error
from runs.models import Role
from runs.views.base import filters, number, page, show_mistakes

CALLS_LISTED = 20
"""Past calls that a rehearsal lists; how many there are stands beside them."""


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def policy_new(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Posting shows the rule first, and saves it from there. `like` in the query fills in another rule."""
    if request.method != "POST":
        return _form(request, actor, _first(request, actor))
    step = request.POST.get("step", "look")
    if step in ("more", "back"):
        return _form(request, actor, PolicyForm.again(request.POST, more=step == "more"))
    form = PolicyForm.posted(request.POST)
    if form.is_valid():
        try:
            return _save(request, actor, form) if step == "save" else _look(request, actor, form)
        except UnconfirmedRule as unconfirmed:
            return _look(request, actor, form, problem=unconfirmed)
        except M3Error as error:
            show_mistakes(form, error)
    return _form(request, actor, form)


def _first(request: HttpRequest, actor: Actor) -> PolicyForm:
    given = filters(request, "like", "target")
    rules = visible(actor, Policy.objects.standing().select_related("end_user"))
    like = number(given["like"])
    policy = rules.filter(pk=like).first() if like is not None else None
    return PolicyForm.like(policy) if policy else PolicyForm(initial={"target": given["target"]})


def _form(request: HttpRequest, actor: Actor, form: PolicyForm) -> HttpResponse:
    context = {"section": "policies", "form": form, "targets": known_targets(actor)}
    return render(request, "policies/new.html", context, status=422 if form.is_bound else 200)


def _look(
    request: HttpRequest, actor: Actor, form: PolicyForm, *, problem: UnconfirmedRule | None = None
) -> HttpResponse:
    preview = writing.preview(actor, form.written())
    rehearsal = preview.rehearsal
    context = {
        "section": "policies",
        "form": form,
        "rehearsal": rehearsal,
        "existing": preview.existing,
        "calls": rehearsal.decided[:CALLS_LISTED],
        "denials": rehearsal.covered_denials[:CALLS_LISTED],
        "problem": problem,
        "untried": problem is not None and request.POST.get("shown") == rehearsal.digest,
    }
    return render(request, "policies/look.html", context, status=409 if problem else 200)


def _save(request: HttpRequest, actor: Actor, form: PolicyForm) -> HttpResponse:
    policy = writing.write(
        actor,
        form.written(),
        shown=request.POST.get("shown", ""),
        confirmed=request.POST.get("confirm") == "1",
    )
    messages.success(request, f"Saved: {rule_sentence(policy)}")
    return redirect("policy-detail", policy.pk)
