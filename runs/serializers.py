"""What the API takes and shows of runs (m8tes-http 2). Types only; the rules are the services'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from runs.api.base import MAX_ID
from runs.api.fields import Flag, Text, Whole, Word
from runs.canonical import canonical_json
from runs.models import Event, Run
from runs.run_states import HumanInput, Outcome, PermissionMode, TurnStatus, api_status

MAX_METADATA = 20_000
"""Characters of a run's metadata as JSON."""

MAX_TOOLS = 500
"""Targets that one selection may name."""


class RunShape(serializers.Serializer[Run]):
    """A run, its status in the words of m8tes clients."""

    id = serializers.IntegerField(source="pk")
    agent_id = serializers.IntegerField()
    task_id = serializers.IntegerField(allow_null=True)
    parent_run_id = serializers.IntegerField(source="parent_id", allow_null=True)
    user_id = serializers.CharField(source="end_user.user_id", allow_null=True)
    message = serializers.CharField()
    status = serializers.SerializerMethodField()
    output = serializers.CharField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    error_code = serializers.CharField(allow_null=True)
    permission_mode = serializers.CharField(source="mode")
    human_in_the_loop = serializers.SerializerMethodField()
    tools = serializers.JSONField(allow_null=True)
    metadata = serializers.JSONField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_status(self, run: Run) -> str:
        return api_status(TurnStatus(run.status), Outcome(run.outcome) if run.outcome else None).value

    def get_human_in_the_loop(self, run: Run) -> bool:
        return run.human_input == HumanInput.MANAGED


class NewRun(serializers.Serializer[Any]):
    """The body that starts a run."""

    agent_id = Whole(min_value=1, max_value=MAX_ID)
    message = Text()
    permission_mode = Word(PermissionMode, required=False, allow_null=True, default=None)
    human_in_the_loop = Flag(required=False, allow_null=True, default=None)
    user_id = Text(required=False, allow_null=True, default=None)
    tools = serializers.ListField(
        child=Text(allow_blank=False, max_length=300),
        max_length=MAX_TOOLS,
        required=False,
        allow_null=True,
        default=None,
    )
    metadata = serializers.DictField(required=False, allow_null=True, default=None)

    def validate_metadata(self, value: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if value and len(canonical_json(value)) > MAX_METADATA:
            raise serializers.ValidationError(f"Must have at most {MAX_METADATA:,} characters as JSON.")
        return value or {}


class NewMessage(serializers.Serializer[Any]):
    """The body of a reply."""

    message = Text()


class EventShape(serializers.Serializer[Event]):
    """One thing that happened in a run; `actor` is a person, a rule, or "worker"."""

    seq = serializers.IntegerField()
    type = serializers.CharField()
    at = serializers.DateTimeField()
    turn_id = serializers.UUIDField(allow_null=True)
    actor = serializers.CharField(source="actor_name")
    payload = serializers.JSONField()
