"""What the API takes and shows of agents (m8tes-http 2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from rest_framework import serializers

from runs.api.base import ListQuery
from runs.api.fields import Metadata, QueryFlag, Text, Word
from runs.models import Agent
from runs.run_states import PermissionMode
from runs.serializers.runs import Fields

MAX_SERVERS = 100


class Status(StrEnum):
    """Whether new runs may start."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class AgentQuery(ListQuery):
    """The query of the list of agents."""

    include_archived = QueryFlag()
    fields = Word(Fields, required=False)  # type: ignore[assignment]  # a field, not the base's attribute


class AgentLine(serializers.Serializer[Agent]):
    """An agent without what may be long."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    harness = serializers.CharField()
    servers = serializers.SerializerMethodField()
    tools = serializers.SerializerMethodField(method_name="get_servers")
    default_permission_mode = Word(PermissionMode, source="default_mode")
    elicitation_timeout = serializers.CharField(allow_null=True)
    status = serializers.SerializerMethodField()
    user_id = serializers.CharField(source="end_user.user_id", allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_servers(self, agent: Agent) -> list[str]:
        """By name; m8tes clients know them as the agent's tools."""
        return [server.name for server in agent.servers.all()]

    def get_status(self, agent: Agent) -> Status:
        return Status.ENABLED if agent.enabled else Status.DISABLED


class AgentShape(AgentLine):
    """An agent in full."""

    instructions = serializers.CharField()
    definition = serializers.DictField()
    metadata = serializers.DictField()


class _Servers(serializers.ListField):
    def __init__(self) -> None:
        super().__init__(
            child=Text(allow_blank=False, max_length=60),
            max_length=MAX_SERVERS,
            required=False,
            allow_null=True,
        )


class AgentChange(serializers.Serializer[Any]):
    """The body that changes an agent; what is left out stays.

    `servers` are names of registered servers; `tools` is what m8tes clients call them. `definition` is what the
    harness reads: of `playbook`, its steps.
    """

    name = Text(required=False)
    instructions = Text(required=False, allow_null=True)
    harness = Text(required=False)
    definition = serializers.DictField(required=False)
    servers = _Servers()
    tools = _Servers()
    default_permission_mode = Word(PermissionMode, required=False)
    elicitation_timeout = Text(required=False, allow_null=True)
    status = Word(Status, required=False)
    metadata = Metadata(required=False, allow_null=True)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        servers, tools = values.get("servers"), values.get("tools")
        if None not in (servers, tools) and servers != tools:
            raise serializers.ValidationError({"tools": "Is the same as servers. Send one of them."})
        return values


class NewAgent(AgentChange):
    """The body that makes an agent. One without a definition fails with a sentence that says so."""

    name = Text()
    user_id = Text(required=False, allow_null=True, default=None)
