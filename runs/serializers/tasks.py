"""What the API takes and shows of tasks (m8tes-http 2)."""

from __future__ import annotations

from typing import Any, Literal

from rest_framework import serializers

from runs.api.base import MAX_ID, ListQuery
from runs.api.fields import Flag, Metadata, QueryFlag, Selection, Text, Unavailable, Word
from runs.models import Task
from runs.run_states import PermissionMode
from runs.serializers.runs import AgentNamed, Streamed

_NO_CLOCK = "Tasks here are started by a call, never by a clock or by somebody else's. Leave it out."


class TaskQuery(ListQuery):
    """The query of the list of tasks."""

    teammate_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    agent_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    include_archived = QueryFlag()


class TaskShape(serializers.Serializer[Task]):
    """A saved task; `tools` is empty where it leaves the agent all that it has."""

    id = serializers.IntegerField(source="pk")
    agent_id = serializers.IntegerField()
    teammate_id = serializers.IntegerField(source="agent_id")
    name = serializers.SerializerMethodField()
    instructions = serializers.CharField()
    tools = serializers.SerializerMethodField()
    permission_mode = Word(PermissionMode, source="default_mode", allow_null=True)
    user_id = serializers.CharField(source="end_user.user_id", allow_null=True)
    status = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_name(self, task: Task) -> str | None:
        return task.name or None

    def get_tools(self, task: Task) -> list[str]:
        return list(task.tools or [])

    def get_status(self, task: Task) -> Literal["enabled"]:
        """What pauses a task elsewhere is its clock, and there is none here."""
        return "enabled"


class TaskChange(serializers.Serializer[Any]):
    """The body that changes a task; what is left out stays, an empty selection of tools is none."""

    name = Text(required=False, allow_null=True)
    instructions = Text(required=False)
    tools = Selection(required=False, allow_null=True)
    permission_mode = Word(PermissionMode, required=False, allow_null=True, source="default_mode")
    status = Unavailable(_NO_CLOCK, off="enabled")
    schedule = Unavailable(_NO_CLOCK)
    webhook = Unavailable(_NO_CLOCK, off=False)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        values = dict(super().validate(values))
        if "name" in values:
            values["name"] = values["name"] or ""
        if "tools" in values:
            values["tools"] = values["tools"] or None
        return values


class NewTask(AgentNamed, TaskChange):
    """The body that saves a task."""

    instructions = Text()
    user_id = Text(required=False, allow_null=True, default=None)


class NewTaskRun(Streamed):
    """The body that starts a task. What is left out is the task's, else the agent's (m8tes-http 4.4)."""

    permission_mode = Word(PermissionMode, required=False, allow_null=True, default=None)
    human_in_the_loop = Flag(required=False, allow_null=True, default=None)
    user_id = Text(required=False, allow_null=True, default=None)
    metadata = Metadata(required=False, allow_null=True, default=None)
