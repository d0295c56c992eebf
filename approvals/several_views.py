"""Allowing several waiting calls at once, on a page that shows each of them in full (R21)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from approvals.batch import Choice
from approvals.decisions import decide_several
from approvals.inbox import Filters
from approvals.several import choice_of, named, several_for
from runs import access
from runs.access import Actor
from runs.errors import ManagedInputValidationError, StateConflict
from runs.models import Round
from runs.views.base import page


@dataclass(frozen=True, kw_only=True)
class Refused:
    """One chosen call that kept all of them from being allowed."""

    round_id: str
    name: str
    message: str


@page("GET", "HEAD", "POST")
def several(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The list to choose from; posted, everything chosen is allowed, or nothing and the list says why."""
    if request.method != "POST":
        return _page(request, actor)
    choices = [choice_of(value) for value in request.POST.getlist("call")]
    key = request.POST.get("idempotency_key", "")[:200]
    try:
        allowed = decide_several(actor, choices, idempotency_key=key)
    except ManagedInputValidationError as error:
        return _page(request, actor, choices, status=422, mistake=error.message)
    except StateConflict as error:
        refused = _refused(actor, error.details["refused"])
        return _page(request, actor, choices, status=409, conflict=error.message, refused=refused)
    shown = _with_cards(actor, [round_.pk for round_ in allowed])
    count = "1 call" if len(shown) == 1 else f"{len(shown)} calls"
    messages.success(request, f"Allowed {count}: {named(shown)}.")
    return redirect(f"{reverse('inbox')}{Filters.of(request.GET).query}")


def _page(
    request: HttpRequest, actor: Actor, choices: Sequence[Choice] = (), *, status: int = 200, **said: Any
) -> HttpResponse:
    filters = Filters.of(request.GET)
    context = {
        "section": "inbox",
        "several": several_for(actor, filters, frozenset(choices)),
        # What was refused has changed nothing, so another try is a new decision.
        "key": uuid.uuid4().hex,
        **said,
    }
    return render(request, "approvals/several.html", context, status=status)


def _refused(actor: Actor, entries: Sequence[Mapping[str, Any]]) -> list[Refused]:
    said = {str(entry["round_id"]): str(entry["message"]) for entry in entries}
    return [
        Refused(round_id=round_.pk, name=named([round_]), message=said[round_.pk])
        for round_ in _with_cards(actor, list(said))
    ]


def _with_cards(actor: Actor, round_ids: Sequence[str]) -> list[Round]:
    rounds = access.visible(actor, Round.objects.for_cards()).filter(pk__in=round_ids)
    return list(rounds.order_by("created_at", "pk"))
