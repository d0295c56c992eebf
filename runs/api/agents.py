"""Agents over HTTP: what a program needs to set one up, so that nobody has to open the page."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from runs import access, agents
from runs.access import Actor
from runs.agents import AgentValues
from runs.api.base import ActorView, check_scope, checked, list_response, of_scope
from runs.models import Agent, Role
from runs.serializers import AgentChange, AgentLine, AgentQuery, AgentShape, NewAgent
from runs.serializers.agents import Status

NO_STEPS: Final = {"steps": [{"fail": "This agent has no steps yet. Give it a definition."}]}
"""What an agent that was made without a definition does: a run of it says why nothing happened."""

_ROWS = Agent.objects.select_related("end_user").prefetch_related("servers")


class AgentList(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def get(self, request: Request) -> Response:
        """Newest first; without a `user_id` those that are for any end user."""
        query = checked(AgentQuery, request.query_params.dict())
        found = of_scope(access.visible(self.actor, _ROWS.all()), query).order_by("-pk")
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        if "fields" in query:
            found = found.defer("instructions", "definition", "metadata")
        shape = AgentLine if "fields" in query else AgentShape
        return list_response(found, query["limit"], shape, lambda agent: agent.pk)

    def post(self, request: Request) -> Response:
        body = checked(NewAgent, request.data)
        values = {"definition": json.dumps(NO_STEPS), **_values(self.actor, body)}
        agent = agents.save(self.actor, None, AgentValues(user_id=body["user_id"], **values))
        return Response(_shown(self.actor, agent.pk), status=201)


class AgentDetail(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def get(self, request: Request, agent_id: int) -> Response:
        self._found(request, agent_id)
        return Response(_shown(self.actor, agent_id))

    def patch(self, request: Request, agent_id: int) -> Response:
        """Change what is given; turns that are under way keep the definition they froze."""
        self._found(request, agent_id)
        body = checked(AgentChange, request.data)
        agents.change(self.actor, agent_id, _values(self.actor, body))
        return Response(_shown(self.actor, agent_id))

    def delete(self, request: Request, agent_id: int) -> Response:
        self._found(request, agent_id)
        agents.remove(self.actor, agent_id)
        return Response(status=204)

    def _found(self, request: Request, agent_id: int) -> None:
        check_scope(
            request, access.get(self.actor, Agent.objects.select_related("end_user"), pk=agent_id).end_user
        )


def _values(actor: Actor, body: dict[str, Any]) -> dict[str, Any]:
    """A checked body in the names of AgentValues, without what it leaves out. Raises ModelValidationError."""
    values: dict[str, Any] = {
        name: body[name] for name in ("name", "harness", "elicitation_timeout") if name in body
    }
    if "instructions" in body:
        values["instructions"] = body["instructions"] or ""
    if "metadata" in body:
        values["metadata"] = body["metadata"] or {}
    if "definition" in body:
        values["definition"] = json.dumps(body["definition"], ensure_ascii=False)
    if "default_permission_mode" in body:
        values["default_mode"] = body["default_permission_mode"]
    if "status" in body:
        values["enabled"] = body["status"] == Status.ENABLED
    names = body.get("tools") if body.get("servers") is None else body["servers"]
    if names is not None:
        values["servers"] = agents.server_ids(actor, names)
    return values


def _shown(actor: Actor, agent_id: int) -> dict[str, Any]:
    return dict(AgentShape(access.get(actor, _ROWS.all(), pk=agent_id)).data)
