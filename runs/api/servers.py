"""Servers and their tools over HTTP: what an embedder needs who never opens the page. Changes are for admins' keys."""

from __future__ import annotations

from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.db import close_old_connections
from rest_framework.request import Request
from rest_framework.response import Response

from runs import access, binding, server_changes, servers, tool_words
from runs.access import Actor
from runs.api.base import ActorView, checked, list_response
from runs.models import Role, Server, Tool
from runs.serializers import (
    EntryShape,
    LookShape,
    NewServer,
    ServerChange,
    ServerQuery,
    ServerShape,
    ToolLine,
    ToolQuery,
    ToolShape,
    WordChange,
)
from runs.serializers.servers import with_words
from runs.servers import ServerValues

VIA = "api"


class EntryList(ActorView):
    def get(self, request: Request) -> Response:
        """The programs that the host lets an account start, all of them, by name."""
        self.actor.require(Role.ADMIN)
        listed = [{"name": name, "variables": list(names)} for name, names in binding.entries().items()]
        return Response([dict(EntryShape(entry).data) for entry in listed])


class ServerList(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def get(self, request: Request) -> Response:
        """Newest first."""
        query = checked(ServerQuery, request.query_params.dict())
        found = access.visible(self.actor, Server.objects.defer("negotiated")).order_by("-pk")
        if "name" in query:
            found = found.filter(name=query["name"])
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        return list_response(found, query["limit"], ServerShape, lambda server: server.pk)

    def post(self, request: Request) -> Response:
        """Register a server; nothing is called before it is tested or a run needs it."""
        body = checked(NewServer, request.data)
        given = {name: value for name, value in body.items() if value is not None}
        server = server_changes.register(self.actor, ServerValues(**given))
        return Response(ServerShape(server).data, status=201)


class ServerDetail(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def get(self, request: Request, server_id: int) -> Response:
        return Response(ServerShape(_server(self.actor, server_id)).data)

    def patch(self, request: Request, server_id: int) -> Response:
        """Change what is given; turns that are under way ask before they call a server that has moved."""
        _server(self.actor, server_id)
        body = checked(ServerChange, request.data)
        return Response(ServerShape(server_changes.change(self.actor, server_id, body, via=VIA)).data)

    def delete(self, request: Request, server_id: int) -> Response:
        servers.remove(self.actor, server_id)
        return Response(status=204)


class ServerTest(ActorView):
    def post(self, request: Request, server_id: int) -> Response:
        """Look at the server now and store what it offers; how it went stands in the answer, which is a 200 either way.

        It takes a thread, but no connection to the database, for as long as the server lets us wait, at most
        `runs.servers.look_seconds()`.
        """
        server = _server(self.actor, server_id)
        close_old_connections()
        return Response(LookShape(async_to_sync(servers.refresh)(server)).data)


class ToolList(ActorView):
    def get(self, request: Request, server_id: int) -> Response:
        """What the server listed last, in the order in which it was first seen."""
        server = _server(self.actor, server_id)
        query = checked(ToolQuery, request.query_params.dict())
        found = server.tools.defer("input_schema", "output_schema").order_by("pk")
        if not query["include_gone"]:
            found = found.filter(present=True)
        if "starting_after" in query:
            found = found.filter(pk__gt=query["starting_after"])
        page = with_words(server, found[: query["limit"] + 1])
        return list_response(page, query["limit"], ToolLine, lambda tool: tool.pk)


class ToolDetail(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def get(self, request: Request, server_id: int, tool_id: int) -> Response:
        return Response(_shown(self.actor, server_id, tool_id))

    def patch(self, request: Request, server_id: int, tool_id: int) -> Response:
        """Say what the tool can do: its risk, or `blocked`; waiting approvals that show another risk are asked anew."""
        _tool(self.actor, server_id, tool_id)
        tool_words.change(self.actor, server_id, tool_id, checked(WordChange, request.data), via=VIA)
        return Response(_shown(self.actor, server_id, tool_id))


def _server(actor: Actor, server_id: int) -> Server:
    return access.get(actor, Server.objects.all(), pk=server_id)


def _tool(actor: Actor, server_id: int, tool_id: int) -> Tool:
    return access.get(actor, Tool.objects.select_related("server"), pk=tool_id, server=server_id)


def _shown(actor: Actor, server_id: int, tool_id: int) -> dict[str, Any]:
    tool = _tool(actor, server_id, tool_id)
    return dict(ToolShape(*with_words(tool.server, [tool])).data)
