"""Servers: the list, one server with its tools, its form, and the look at it."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.db import close_old_connections
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from runs import servers, tool_words
from runs.access import Actor, actor_for, get, visible
from runs.errors import M3Error, ModelValidationError
from runs.forms import ServerForm, ToolWordsForm
from runs.models import Role, Server
from runs.risk import Risk
from runs.views.base import page, show_mistakes


@page()
def server_list(request: HttpRequest, actor: Actor) -> HttpResponse:
    tools = Count("tools", filter=Q(tools__present=True), distinct=True)
    rows = visible(
        actor, Server.objects.annotate(tool_count=tools, agent_count=Count("agents", distinct=True))
    )
    context = {
        "section": "servers",
        "servers": rows.defer("negotiated", "instructions", "headers", "variables"),
    }
    return render(request, "servers/list.html", context)


@page()
def server_detail(request: HttpRequest, actor: Actor, server_id: int) -> HttpResponse:
    return _detail(request, _server(actor, server_id))


def _detail(request: HttpRequest, server: Server) -> HttpResponse:
    rows = list(server.tools.defer("input_schema", "output_schema"))
    words = tool_words.latest_words(server)
    for tool in rows:
        tool.server = server
        tool.standing = tool_words.standing_of(tool, server)  # type: ignore[attr-defined]  # for the template alone
        tool.word = words.get(tool.pk)  # type: ignore[attr-defined]  # so is this
    context = {
        "section": "servers",
        "server": server,
        "tools": [tool for tool in rows if tool.present],
        "gone": [tool for tool in rows if not tool.present],
        "agents": server.agents.order_by("name").values("pk", "name"),
        "risks": list(Risk),
        "secrets": sorted({**server.headers, **server.variables}),
        "uses": servers.uses(server),
        "look_seconds": servers.look_seconds(),
    }
    template = "servers/looked_at.html" if getattr(request, "htmx", False) else "servers/detail.html"
    return render(request, template, context)


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def server_create(request: HttpRequest, actor: Actor) -> HttpResponse:
    return _edit(request, actor, None, ServerForm(request.POST or None))


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def server_edit(request: HttpRequest, actor: Actor, server_id: int) -> HttpResponse:
    server = _server(actor, server_id)
    form = ServerForm(request.POST or None, initial=ServerForm.initial_for(server), stored=server)
    return _edit(request, actor, server, form)


def _edit(request: HttpRequest, actor: Actor, server: Server | None, form: ServerForm) -> HttpResponse:
    if form.is_bound and form.is_valid():
        try:
            values = form.values()
            saved = servers.update(actor, server.pk, values) if server else servers.register(actor, values)
        except M3Error as error:
            show_mistakes(form, error)
        else:
            messages.success(request, f"{saved.name} is saved. Test the connection to see its tools.")
            return redirect("server-detail", saved.pk)
    context = {"section": "servers", "server": server, "form": form}
    return render(request, "servers/edit.html", context, status=422 if form.errors else 200)


@require_POST
async def server_test(request: HttpRequest, server_id: int) -> HttpResponseBase:
    """Look at the server now; while it takes its time, others have the connection to the database."""
    user = await request.auser()
    server = await sync_to_async(_to_look_at)(user, server_id)
    await sync_to_async(close_old_connections)()
    looked_at = await servers.refresh(server)
    if getattr(request, "htmx", False):
        return await sync_to_async(_detail)(request, looked_at)
    return redirect("server-detail", server_id)


def _to_look_at(user: object, server_id: int) -> Server:
    actor = actor_for(user)  # type: ignore[arg-type]  # what auser() yields: a User or nobody
    actor.require(Role.OPERATOR)
    return _server(actor, server_id)


@page("POST", role=Role.ADMIN)
def server_tool_words(request: HttpRequest, actor: Actor, server_id: int, tool_id: int) -> HttpResponse:
    """Store an admin's word on a tool; its approvals that wait are decided anew where the risk changes."""
    form = ToolWordsForm(request.POST)
    if not form.is_valid():
        raise ModelValidationError(f"A risk is one of {', '.join(Risk)}, or empty for what the server says.")
    tool = tool_words.say(actor, server_id, tool_id, form.words())
    stands = tool_words.standing_of(tool, tool.server)
    messages.success(
        request, f"{tool.full_name} counts as {stands.risk.value} now, because {stands.risk_by.describe}."
    )
    return redirect(f"{reverse('server-detail', args=[server_id])}#tool-{tool.pk}")


@page("POST", role=Role.ADMIN)
def server_trust(request: HttpRequest, actor: Actor, server_id: int) -> HttpResponse:
    server = servers.set_trusted(actor, server_id, request.POST.get("trusted") == "on")
    word = "counts" if server.trusted else "does not count"
    messages.success(request, f"What {server.name} says about its own tools {word} now.")
    return redirect("server-detail", server_id)


@page("GET", "HEAD", "POST", role=Role.ADMIN)
def server_remove(request: HttpRequest, actor: Actor, server_id: int) -> HttpResponse:
    """Reading asks for the confirmation, posting removes."""
    server = _server(actor, server_id)
    if request.method != "POST":
        context = {
            "section": "servers",
            "server": server,
            "agents": server.agents.order_by("name").values("pk", "name"),
            "uses": servers.uses(server),
        }
        return render(request, "servers/remove.html", context)
    name = servers.remove(actor, server.pk)
    messages.success(request, f"{name} is removed. What its calls did stays in the history.")
    return redirect("server-list")


def _server(actor: Actor, server_id: int) -> Server:
    return get(actor, Server.objects.all(), pk=server_id)
