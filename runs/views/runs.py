"""Runs: the list, one run with its timeline, and what people do with a run."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from runs import commands, timeline
from runs.access import Actor, get, visible
from runs.errors import M3Error, NotFound
from runs.forms import ReplyForm, StartForm
from runs.models import Agent, Event, Role, Round, Run, Step
from runs.run_states import Outcome, PermissionMode, TurnStatus
from runs.timeline.words import pretty
from runs.views.base import filters, number, page, show_mistakes

PAGE = 40
"""Runs on one page of the list."""

STATES: dict[str, tuple[str, Q]] = {
    "waiting": ("Waiting for a person", Q(status=TurnStatus.WAITING_FOR_INPUT.value)),
    "running": (
        "Running",
        ~Q(status__in=[TurnStatus.WAITING_FOR_INPUT.value, TurnStatus.FINISHED.value]),
    ),
    "completed": ("Completed", Q(outcome=Outcome.COMPLETED.value)),
    "failed": (
        "Failed",
        Q(outcome__in=[Outcome.FAILED.value, Outcome.TIMED_OUT.value, Outcome.INTERRUPTED.value]),
    ),
    "cancelled": ("Cancelled", Q(outcome=Outcome.CANCELLED.value)),
}
"""The filters of the list: word in the URL -> label and condition."""


@page()
def run_list(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Newest first; `before` pages by id, so that a run started meanwhile moves nothing."""
    chosen = filters(request, "status", "agent", "user", "before")
    rows = list(_filtered(actor, chosen).order_by("-pk")[: PAGE + 1])
    context = {
        "section": "runs",
        "runs": rows[:PAGE],
        "next_before": rows[PAGE - 1].pk if len(rows) > PAGE else None,
        "states": [(word, label) for word, (label, _) in STATES.items()],
        "agents": visible(actor, Agent.objects.order_by("name")).values_list("pk", "name"),
        "chosen": chosen,
        "filtered": any(chosen.values()),
    }
    return render(request, "runs/list.html", context)


def _filtered(actor: Actor, chosen: dict[str, str]) -> QuerySet[Run]:
    pending = (
        Round.objects.filter(run=OuterRef("pk")).pending().order_by().values("run").annotate(n=Count("pk"))
    )
    runs = (
        visible(actor, Run.objects.all())
        .select_related("agent", "end_user", "started_by")
        .defer("output", "metadata", "tools")
        .annotate(waiting=Coalesce(Subquery(pending.values("n")), 0))
    )
    if chosen["status"] in STATES:
        runs = runs.filter(STATES[chosen["status"]][1])
    agent, before = number(chosen["agent"]), number(chosen["before"])
    if agent is not None:
        runs = runs.filter(agent=agent)
    if chosen["user"]:
        runs = runs.filter(end_user__user_id=chosen["user"])
    if before is not None:
        runs = runs.filter(pk__lt=before)
    return runs


@page()
def run_detail(request: HttpRequest, actor: Actor, run_id: int) -> HttpResponse:
    run = _run(actor, run_id)
    before = number(request.GET.get("before", ""))
    shown = timeline.page(run, before=before)
    return render(request, "runs/detail.html", _run_context(run) | {"timeline": shown, "before": before})


@page()
def run_timeline(request: HttpRequest, actor: Actor, run_id: int) -> HttpResponse:
    """What an open page needs to catch up: rows changed since event `after`, and the parts of the page that
    follow the run's status."""
    run = _run(actor, run_id)
    changed = timeline.since(run, after=number(request.GET.get("after", "")) or 0)
    return render(request, "runs/changes.html", _run_context(run) | {"timeline": changed})


@page()
def run_text(request: HttpRequest, actor: Actor, run_id: int, step: int, part: str) -> HttpResponse:
    """One text of a step as a whole, as a file: whatever it contains, no browser renders it (R11, R15)."""
    run = _run(actor, run_id)
    found = Step.objects.select_related("call").filter(run=run, seq=step).first()
    if found is None:
        raise NotFound(f"Run {run.pk} has no step {step}.")
    return _download(_part(found, part), f"run-{run.pk}-step-{step}-{part}.txt")


@page()
def run_output(request: HttpRequest, actor: Actor, run_id: int, seq: int) -> HttpResponse:
    """The whole output of a turn whose row shows only its beginning."""
    run = _run(actor, run_id)
    event = Event.objects.filter(run=run, seq=seq).first()
    if event is None:
        raise NotFound(f"Run {run.pk} has no event {seq}.")
    return _download(str(event.payload.get("output") or ""), f"run-{run.pk}-output.txt")


@page("GET", "HEAD", "POST", role=Role.OPERATOR)
def run_start(request: HttpRequest, actor: Actor) -> HttpResponse:
    initial = {"agent": request.GET.get("agent"), "mode": ""}
    form = StartForm(actor, request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            run = commands.start_run(actor, form.cleaned_data["agent"].pk, form.submission())
        except M3Error as error:
            show_mistakes(form, error)
        else:
            return redirect("run-detail", run.pk)
    return render(
        request, "runs/start.html", {"section": "runs", "form": form}, status=422 if form.errors else 200
    )


@page("POST", role=Role.OPERATOR)
def run_cancel(request: HttpRequest, actor: Actor, run_id: int) -> HttpResponse:
    run = commands.cancel_run(actor, run_id)
    messages.success(request, f"Run {run.pk} is cancelled. Nothing more of it will be sent.")
    return redirect("run-detail", run.pk)


@page("POST", role=Role.OPERATOR)
def run_reply(request: HttpRequest, actor: Actor, run_id: int) -> HttpResponse:
    run = _run(actor, run_id)
    form = ReplyForm(request.POST)
    if form.is_valid():
        try:
            commands.reply(actor, run.pk, form.cleaned_data["message"])
        except M3Error as error:
            show_mistakes(form, error)
        else:
            return redirect(f"{reverse('run-detail', args=[run.pk])}#end")
    context = _run_context(run) | {"timeline": timeline.page(run), "reply": form}
    return render(request, "runs/detail.html", context, status=422)


def _run(actor: Actor, run_id: int) -> Run:
    return get(actor, Run.objects.select_related("agent", "end_user", "started_by", "parent"), pk=run_id)


def _run_context(run: Run) -> dict[str, Any]:
    waiting = Round.objects.filter(run=run).pending().order_by("created_at")
    return {
        "section": "runs",
        "run": run,
        "live": run.status != TurnStatus.FINISHED,
        "waiting": list(waiting.values("pk", "kind", "server_name", "operation_name", "deadline")[:50]),
        "modes": [(mode.value, mode.describe) for mode in PermissionMode],
        "metadata": pretty(run.metadata) if run.metadata else "",
        "reply": ReplyForm(),
    }


def _part(step: Step, part: str) -> str:
    call = getattr(step, "call", None)
    result = (step.result or {}).get("result")
    values: dict[str, Any] = {"text": step.params.get("text"), "result": result}
    if call is not None:
        whole = call.raw_result if isinstance(result, dict) and result.get("truncated") is True else result
        values |= {"arguments": call.asked, "edited": call.edited, "result": whole}
    if values.get(part) is None:
        raise NotFound(f"Step {step.seq} has no {part[:40]}.")
    return (
        values[part]
        if isinstance(values[part], str)
        else json.dumps(values[part], ensure_ascii=False, indent=2)
    )


def _download(text: str, name: str) -> HttpResponse:
    # A lone surrogate is no character and has no UTF-8 form; it is shown as its escape.
    response = HttpResponse(
        text.encode("utf-8", "backslashreplace"), content_type="text/plain; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
