"""The inbox and its cards: parse, call the service, render.

One card fragment has three uses: in its page, as the answer to an htmx request, and after a hint (house style 11).
Everything works without JavaScript: a decision is a plain POST that redirects to the next card.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from approvals import deadlines, decisions
from approvals.answers import Posted, Problem, edit_form, problems_of, read_post, request_form
from approvals.cards import Card, RememberChoice, card_for, questions_of, row_for
from approvals.cards.remember import remember_choices, while_editing
from approvals.forms import ElicitationForm
from approvals.inbox import Filters, counts_for, inbox_for, lists, next_after
from runs import access
from runs.access import Actor
from runs.errors import ManagedInputConflict, ManagedInputValidationError, StateConflict
from runs.models import Round
from runs.readable import is_readable, unreadable
from runs.round_states import RoundKind, RoundStatus
from runs.views.base import page


@page()
def inbox(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Everything that waits for a person in the account, with the first card beside it."""
    filters = Filters.of(request.GET)
    first = next_after(actor, filters, decided="")
    return _page(request, actor, first, own_page=False)


@page()
def round_page(request: HttpRequest, actor: Actor, round_id: str) -> HttpResponse:
    """A pause on a page of its own, pending or ended; on a wide screen the list stands beside it."""
    return _page(request, actor, _get(actor, round_id), own_page=True)


@page()
def card(request: HttpRequest, actor: Actor, round_id: str) -> HttpResponse:
    """The card alone."""
    return render(request, "approvals/card.html", _card_context(request, actor, _get(actor, round_id)))


@page()
def ending(request: HttpRequest, actor: Actor, round_id: str) -> HttpResponse:
    """How a pause stands or ended, in one line: the closing bar of an open card, and the receipt of a decision."""
    shown = card_for(_get(actor, round_id), actor)
    return render(request, "approvals/ending.html", {"card": shown})


@page()
def row(request: HttpRequest, actor: Actor, round_id: str) -> HttpResponse:
    """What one hint changes in the list: the counts, and the row if it still belongs there."""
    filters = Filters.of(request.GET)
    round_ = lists(actor, filters, round_id)
    context = {"inbox": counts_for(actor, filters), "row": row_for(round_) if round_ else None}
    return render(request, "approvals/row_update.html", context)


@page()
def waiting(request: HttpRequest, actor: Actor) -> HttpResponse:
    """The list alone, fetched anew after a lost connection (R45)."""
    return render(request, "approvals/list.html", {"inbox": inbox_for(actor, Filters.of(request.GET))})


@page("POST")
def decide(request: HttpRequest, actor: Actor, round_id: str) -> HttpResponse:
    """Store what a person decided; 422 keeps what was typed, 409 shows who was faster (R2, R7)."""
    round_ = _get(actor, round_id)
    if not is_readable(round_):
        return _too_late(request, actor, round_, unreadable(round_id).message)
    posted = read_post(round_, request.POST)
    if posted.problems and round_.status == RoundStatus.PENDING and actor.can_decide:
        return _refused(request, actor, round_, posted, posted.problems)
    try:
        settled = _settle(request, actor, round_, posted)
    except ManagedInputValidationError as error:
        return _refused(request, actor, _get(actor, round_id), posted, problems_of(error))
    except (StateConflict, ManagedInputConflict) as error:
        return _too_late(request, actor, _get(actor, round_id), error.message)
    return _went_on(request, actor, _get(actor, settled.pk), posted)


@page("POST")
def extend(request: HttpRequest, actor: Actor, round_id: str) -> HttpResponse:
    """Give a pause more time."""
    try:
        deadlines.extend(actor, round_id)
    except StateConflict as error:
        return _too_late(request, actor, _get(actor, round_id), error.message)
    return _show_again(request, actor, _get(actor, round_id))


def _get(actor: Actor, round_id: str) -> Round:
    return access.get(actor, Round.objects.for_cards(), pk=round_id)


def _settle(request: HttpRequest, actor: Actor, round_: Round, posted: Posted) -> Round:
    if posted.draft is not None:
        if request.POST.get("digest", "") != round_.shown_digest:
            raise StateConflict("What you were shown is not what is pending now. Look at the card again.")
        return decisions.save_draft(actor, round_.pk, *posted.draft)
    return decisions.decide(
        actor,
        round_.pk,
        posted.responses,
        idempotency_key=request.POST.get("idempotency_key", "")[:200],
        # Mandatory on the page: a form without the digest is one that did not show what it decides (R12).
        shown_digest=request.POST.get("digest", ""),
        remember=posted.remember,
        note=posted.note,
    )


def _page(request: HttpRequest, actor: Actor, round_: Round | None, *, own_page: bool) -> HttpResponse:
    context = {"section": "inbox", "inbox": inbox_for(actor, Filters.of(request.GET)), "own_page": own_page}
    if round_ is not None:
        context |= _card_context(request, actor, round_)
    return render(request, "approvals/inbox.html", context)


def _card_context(
    request: HttpRequest,
    actor: Actor,
    round_: Round,
    *,
    posted: Posted | None = None,
    problems: Sequence[Problem] = (),
    conflict: str = "",
) -> dict[str, Any]:
    """The one context of the card fragment. What was posted is shown again only while it may still be sent."""
    shown = card_for(round_, actor)
    posted = posted if posted is not None and shown.controls else None
    editing = _editing(request, round_, posted) if shown.controls else None
    if editing is not None and shown.remember:
        shown = replace(shown, remember=_remember_edited(round_, shown, editing))
    if posted and shown.questions:
        shown = replace(shown, questions=questions_of(round_, posted.responses))
    return {
        "card": shown,
        "filters": Filters.of(request.GET),
        "key": (posted and request.POST.get("idempotency_key")) or uuid.uuid4().hex,
        "problems": problems,
        "wrong": {problem.anchor for problem in problems},
        "conflict": conflict,
        "typed": request.POST if posted else None,
        "editing": editing,
        "sections": _sections(round_, shown, posted),
    }


def _editing(request: HttpRequest, round_: Round, posted: Posted | None) -> ElicitationForm | None:
    """The form to edit the arguments, if it is open."""
    if round_.kind != RoundKind.APPROVAL or not ("edit" in request.GET or "edit" in request.POST):
        return None
    return (posted.forms.get(0) if posted else None) or edit_form(round_)


def _remember_edited(round_: Round, shown: Card, editing: ElicitationForm) -> tuple[RememberChoice, ...]:
    """What may be remembered with edited arguments; those about exactly them only once they were posted."""
    if editing.is_bound and editing.is_valid():
        return remember_choices(round_, edited=editing.content)
    return while_editing(shown.remember)


def _sections(round_: Round, shown: Card, posted: Posted | None) -> list[tuple[Any, ElicitationForm | None]]:
    """Each keyed request with its form: as it was typed, else as it stands in a draft, else empty."""
    typed = posted.forms if posted else {}
    requests = list(round_.requests.values()) if shown.asked else []
    return [
        (
            asked,
            None
            if asked.url
            else typed.get(asked.number) or request_form(requests[asked.number], asked.number),
        )
        for asked in shown.asked
    ]


def _refused(
    request: HttpRequest, actor: Actor, round_: Round, posted: Posted, problems: Sequence[Problem]
) -> HttpResponse:
    context = _card_context(request, actor, round_, posted=posted, problems=problems)
    return _again(request, actor, context, status=422)


def _too_late(request: HttpRequest, actor: Actor, round_: Round, sentence: str) -> HttpResponse:
    return _again(request, actor, _card_context(request, actor, round_, conflict=sentence), status=409)


def _again(request: HttpRequest, actor: Actor, context: dict[str, Any], *, status: int) -> HttpResponse:
    if getattr(request, "htmx", False):
        return render(request, "approvals/card.html", context, status=status)
    whole = {
        "section": "inbox",
        "inbox": inbox_for(actor, Filters.of(request.GET)),
        "own_page": True,
        **context,
    }
    return render(request, "approvals/inbox.html", whole, status=status)


def _went_on(request: HttpRequest, actor: Actor, round_: Round, posted: Posted) -> HttpResponse:
    """After a decision: the next card with a receipt of this one; after a saved part: the same card."""
    filters = Filters.of(request.GET)
    if round_.status == RoundStatus.PENDING:
        return _show_again(request, actor, round_, posted)
    following = next_after(actor, filters, decided=round_.pk)
    receipt = card_for(round_, actor)
    if getattr(request, "htmx", False):
        context = _card_context(request, actor, following) if following else {"filters": filters}
        return render(request, "approvals/next.html", {**context, "receipt": receipt})
    if receipt.ending:
        messages.success(request, f"{receipt.ending.word}: {receipt.headline}. {receipt.state.sentence}")
    address = reverse("round", args=[following.pk]) if following else reverse("inbox")
    return redirect(f"{address}{filters.query}")


def _show_again(
    request: HttpRequest, actor: Actor, round_: Round, posted: Posted | None = None
) -> HttpResponse:
    if getattr(request, "htmx", False):
        return render(request, "approvals/card.html", _card_context(request, actor, round_, posted=posted))
    return redirect(f"{reverse('round', args=[round_.pk])}{Filters.of(request.GET).query}")
