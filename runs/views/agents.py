"""Agents: the list, one agent, and its editor."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from runs import agents
from runs.access import Actor, visible
from runs.errors import M3Error
from runs.forms import EXAMPLE, AgentForm
from runs.models import Agent, Role, Run
from runs.run_states import PermissionMode, TurnStatus
from runs.timeline.words import pretty
from runs.views.base import page, show_mistakes

RECENT = 10
"""Runs shown on an agent's page."""


@page()
def agent_list(request: HttpRequest, actor: Actor) -> HttpResponse:
    live = Count("runs", filter=~Q(runs__status=TurnStatus.FINISHED.value), distinct=True)
    rows = visible(actor, Agent.objects.annotate(live=live)).prefetch_related("servers").defer("definition")
    return render(request, "agents/list.html", {"section": "agents", "agents": rows})


@page()
def agent_detail(request: HttpRequest, actor: Actor, agent_id: int) -> HttpResponse:
    agent = agents.agent_of(actor, agent_id)
    recent = (
        Run.objects.filter(agent=agent)
        .select_related("agent", "end_user", "started_by")
        .order_by("-pk")[:RECENT]
    )
    context = {
        "section": "agents",
        "agent": agent,
        "servers": agent.servers.annotate(tool_count=Count("tools", filter=Q(tools__present=True))),
        "definition": pretty(agent.definition),
        "mode": PermissionMode(agent.default_mode),
        "runs": recent,
    }
    return render(request, "agents/detail.html", context)


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def agent_create(request: HttpRequest, actor: Actor) -> HttpResponse:
    initial = {"definition": EXAMPLE, "default_mode": PermissionMode.APPROVAL.value}
    return _edit(request, actor, None, AgentForm(actor, request.POST or None, initial=initial))


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def agent_edit(request: HttpRequest, actor: Actor, agent_id: int) -> HttpResponse:
    agent = agents.agent_of(actor, agent_id)
    initial = AgentForm.initial_for(agent, pretty(agent.definition))
    return _edit(request, actor, agent, AgentForm(actor, request.POST or None, initial=initial))


def _edit(request: HttpRequest, actor: Actor, agent: Agent | None, form: AgentForm) -> HttpResponse:
    if form.is_bound and form.is_valid():
        try:
            saved = agents.save(actor, agent, form.values())
        except M3Error as error:
            show_mistakes(form, error)
        else:
            messages.success(
                request, f"{saved.name} is saved. Runs that are under way keep what they started with."
            )
            return redirect("agent-detail", saved.pk)
    context = {"section": "agents", "agent": agent, "form": form, "example": EXAMPLE}
    return render(request, "agents/edit.html", context, status=422 if form.errors else 200)
