"""Rules as JSON: to download, and to bring in after a look at what that would do."""

from __future__ import annotations

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from approvals.exchange import Fate, export, import_, preview
from approvals.policy_forms import ImportForm
from approvals.policy_history import differences
from approvals.rehearsal import UnconfirmedRule
from runs.access import Actor
from runs.errors import M3Error
from runs.models import Role
from runs.views.base import page

_WORDS = {
    Fate.MADE: "New",
    Fate.CHANGED: "Changes",
    Fate.UNCHANGED: "Stays as it is",
    Fate.EXPIRED: "Left out",
}


@page(role=Role.ADMIN)
def policy_export(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The rules that have not expired, as a file."""
    text = json.dumps(export(actor.account), ensure_ascii=False, indent=2)
    name = f"policies-{actor.account.slug}-{timezone.now():%Y-%m-%d}.json"
    response = HttpResponse(f"{text}\n", content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def policy_import(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Posting shows what the import would do, rule by rule, and imports from there."""
    if request.method != "POST":
        return _form(request, ImportForm())
    form = ImportForm(request.POST, request.FILES)
    if request.POST.get("step") == "back":
        return _form(request, ImportForm(initial={"text": request.POST.get("text", "")}))
    if not form.is_valid():
        return _form(request, form)
    try:
        return (
            _save(request, actor, form) if request.POST.get("step") == "save" else _look(request, actor, form)
        )
    except UnconfirmedRule as unconfirmed:
        return _look(request, actor, form, problem=unconfirmed)
    except M3Error as error:
        for mistake in error.details.get("mistakes") or [{}]:
            form.add_error(
                None, f"Rule {mistake['rule']}: {mistake['message']}" if mistake else error.message
            )
        return _form(request, form)


def _form(request: HttpRequest, form: ImportForm) -> HttpResponse:
    context = {"section": "policies", "tab": "exchange", "form": form}
    return render(request, "policies/exchange.html", context, status=422 if form.is_bound else 200)


def _look(
    request: HttpRequest, actor: Actor, form: ImportForm, *, problem: UnconfirmedRule | None = None
) -> HttpResponse:
    plan = preview(actor, form.content)
    context = {
        "section": "policies",
        "source": form.source,
        "plan": plan,
        "counts": [(word, plan.count(fate)) for fate, word in _WORDS.items()],
        "rows": [
            (planned, _WORDS[planned.fate], differences(planned.before, planned.after))
            for planned in plan.rules
        ],
        "does_something": any(planned.fate in (Fate.MADE, Fate.CHANGED) for planned in plan.rules),
        "problem": problem,
        "untried": problem is not None and request.POST.get("seen") == plan.digest,
    }
    return render(request, "policies/import.html", context, status=409 if problem else 200)


def _save(request: HttpRequest, actor: Actor, form: ImportForm) -> HttpResponse:
    done = import_(
        actor,
        form.content,
        shown=request.POST.get("shown"),
        confirmed=request.POST.get("confirm") == "1",
        seen=request.POST.get("seen", ""),
    )
    messages.success(
        request,
        f"Imported: {done.made} made, {done.changed} changed, {done.unchanged} unchanged, {done.expired} left out.",
    )
    return redirect("policy-list")
