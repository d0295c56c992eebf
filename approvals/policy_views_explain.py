"""What would be decided about a call that nobody makes, and why."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from approvals.explain import Explanation, explain
from approvals.policy_forms import ExplainForm
from approvals.policy_lists import known_targets
from runs.access import Actor
from runs.errors import M3Error
from runs.run_states import PermissionMode
from runs.views.base import filters, page, show_mistakes


@page("GET", "HEAD", "POST")
def policy_explain(request: HttpRequest, actor: Actor) -> HttpResponse:
    """A question is posted although it changes nothing: arguments do not belong into addresses and logs."""
    if request.method == "POST":
        form = ExplainForm(request.POST)
        answer = _answer(actor, form)
    else:
        asked = filters(request, "target", "user_id")
        form, answer = ExplainForm(initial={**asked, "mode": PermissionMode.APPROVAL.value}), None
    context = {
        "section": "policies",
        "tab": "explain",
        "form": form,
        "answer": answer,
        "targets": known_targets(actor),
    }
    return render(request, "policies/explain.html", context, status=422 if form.errors else 200)


def _answer(actor: Actor, form: ExplainForm) -> Explanation | None:
    if not form.is_valid():
        return None
    try:
        return explain(actor, form.question())
    except M3Error as error:
        show_mistakes(form, error)
        return None
