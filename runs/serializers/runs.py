"""What the API takes and shows of runs (m8tes-http 2)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from rest_framework import serializers

from runs.api.base import MAX_ID, ListQuery
from runs.api.fields import Flag, Metadata, QueryFlag, Selection, Text, Whole, Word
from runs.models import Event, Run, Turn
from runs.run_states import ApiStatus, HumanInput, Outcome, PermissionMode, TurnStatus, api_status


class StatusFilter(StrEnum):
    """What a list of runs may be asked for; no run here is ever one of the last three."""

    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CLOSED = "closed"
    PAUSED = "paused"
    ARCHIVED = "archived"


class Sort(StrEnum):
    """`priority`: runs that wait for a person before all others, each part newest first."""

    CREATED = "created"
    PRIORITY = "priority"


class Archived(StrEnum):
    """No run here is ever archived, so `only` finds none."""

    EXCLUDE = "exclude"
    ONLY = "only"
    INCLUDE = "include"


class Fields(StrEnum):
    """`summary` leaves out what may be long."""

    SUMMARY = "summary"


class RunQuery(ListQuery):
    """The query of the list of runs."""

    teammate_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    agent_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    task_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    status = Word(StatusFilter, required=False)
    sort = Word(Sort, default=Sort.CREATED.value)
    archived = Word(Archived, default=Archived.EXCLUDE.value)
    include_end_user_runs = QueryFlag()
    exclude_platform_runs = QueryFlag()
    fields = Word(Fields, required=False)  # type: ignore[assignment]  # a field, not the base's attribute


class RunLine(serializers.Serializer[Run]):
    """A run without what may be long."""

    # Its rows come from `runs.api.run_rows`.

    id = serializers.IntegerField(source="pk")
    agent_id = serializers.IntegerField()
    teammate_id = serializers.IntegerField(source="agent_id")
    task_id = serializers.IntegerField(allow_null=True)
    task_name = serializers.SerializerMethodField()
    parent_run_id = serializers.IntegerField(source="parent_id", allow_null=True)
    started_by = serializers.SerializerMethodField()
    user_id = serializers.CharField(source="end_user.user_id", allow_null=True)
    status = serializers.SerializerMethodField()
    error_code = serializers.CharField(allow_null=True)
    failure_kind = serializers.SerializerMethodField()
    permission_mode = Word(PermissionMode, source="mode")
    human_in_the_loop = serializers.SerializerMethodField()
    needs_reply = serializers.SerializerMethodField()
    delivery = serializers.SerializerMethodField()
    queued_message_id = serializers.SerializerMethodField()
    pending_queued_message_ids = serializers.SerializerMethodField()
    cancelled_queued_message_ids = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(source="first_started_at", allow_null=True)
    turn_started_at = serializers.SerializerMethodField()
    last_activity_at = serializers.DateTimeField(allow_null=True)

    def get_task_name(self, run: Run) -> str | None:
        return (run.task.name or None) if run.task else None

    def get_started_by(self, run: Run) -> dict[str, int] | None:
        """The run whose agent started this one."""
        return {"run_id": run.parent.pk, "teammate_id": run.parent.agent_id} if run.parent else None

    def get_status(self, run: Run) -> ApiStatus:
        return _status(run)

    def get_failure_kind(self, run: Run) -> Literal["error"] | None:
        return "error" if _status(run) is ApiStatus.FAILED else None

    def get_human_in_the_loop(self, run: Run) -> bool:
        return run.human_input == HumanInput.MANAGED

    def get_needs_reply(self, run: Run) -> bool:
        """Whether it waits for a person."""
        return _status(run) is ApiStatus.AWAITING_APPROVAL

    def get_delivery(self, run: Run) -> Literal["resumed", "queued"] | None:
        """Of a reply: whether the run went on with it, or it waits for the turn at work (m8tes-http 5.8)."""
        return "queued" if _waiting(run) else None

    def get_queued_message_id(self, run: Run) -> int | None:
        return next(iter(_waiting(run)), None)

    def get_pending_queued_message_ids(self, run: Run) -> list[int]:
        return _waiting(run)

    def get_cancelled_queued_message_ids(self, run: Run) -> list[int]:
        return [turn.index for turn in _turns(run) if turn.outcome is not None]

    def get_turn_started_at(self, run: Run) -> str | None:
        """When the turn that is at work was taken up, or the last one; null while a reply waits to be."""
        open_ = _open(run)
        moment = open_[0].started_at if open_ else getattr(run, "last_started_at", None)
        return serializers.DateTimeField().to_representation(moment) if moment else None


class RunShape(RunLine):
    """A run in full, its status in the words of m8tes clients."""

    message = serializers.CharField()
    output = serializers.CharField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    metadata = serializers.DictField()
    files = serializers.SerializerMethodField()

    def get_files(self, run: Run) -> list[dict[str, Any]]:
        """Runs here make none."""
        return []


def _status(run: Run) -> ApiStatus:
    return api_status(TurnStatus(run.status), Outcome(run.outcome) if run.outcome else None)


def _open(run: Run) -> list[Turn]:
    return [turn for turn in _turns(run) if turn.outcome is None]


def _waiting(run: Run) -> list[int]:
    """Messages that wait behind the turn at work; a message's number is that of its turn (m8tes-http 5.8)."""
    return [turn.index for turn in _open(run)[1:]]


def _turns(run: Run) -> list[Turn]:
    """The turns that are not over, and the replies that were cancelled before anything came of them, in order."""
    turns: list[Turn] = getattr(run, "open_turns", [])
    return turns


class AgentNamed(serializers.Serializer[Any]):
    """A body that names an agent, by our word or by the one that m8tes clients send (m8tes-http 3)."""

    agent_id = Whole(min_value=1, max_value=MAX_ID)
    teammate_id = Whole(min_value=1, max_value=MAX_ID, required=False, allow_null=True)

    def to_internal_value(self, data: Any) -> Any:
        """`agent_id` is what counts; here, so that its absence is told together with every other mistake."""
        if isinstance(data, Mapping) and data.get("agent_id") is None and data.get("teammate_id") is not None:
            data = {**data, "agent_id": data["teammate_id"]}
        return super().to_internal_value(data)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        if values.get("teammate_id") not in (None, values["agent_id"]):
            raise serializers.ValidationError({"teammate_id": "Is the same as agent_id. Send one of them."})
        return dict(super().validate(values))


class Streamed(serializers.Serializer[Any]):
    """A body whose answer may come as a stream of events."""

    stream = Flag(required=False, allow_null=True, default=False)


class NewRun(AgentNamed, Streamed):
    """The body that starts a run."""

    message = Text()
    permission_mode = Word(PermissionMode, required=False, allow_null=True, default=None)
    human_in_the_loop = Flag(required=False, allow_null=True, default=None)
    user_id = Text(required=False, allow_null=True, default=None)
    tools = Selection(required=False, allow_null=True, default=None)
    metadata = Metadata(required=False, allow_null=True, default=None)


class NewMessage(Streamed):
    """The body of a reply. What is left out stays as it is in the run."""

    message = Text()
    permission_mode = Word(PermissionMode, required=False, allow_null=True, default=None)
    human_in_the_loop = Flag(required=False, allow_null=True, default=None)
    tools = Selection(required=False, allow_null=True, default=None)


class EventShape(serializers.Serializer[Event]):
    """One thing that happened in a run; `actor` is a person, a rule, or "worker"."""

    seq = serializers.IntegerField()
    type = serializers.CharField()
    at = serializers.DateTimeField()
    turn_id = serializers.UUIDField(allow_null=True)
    actor = serializers.CharField(source="actor_name")
    payload = serializers.DictField()


class AccountEvent(EventShape):
    """One thing that happened in an account."""

    id = serializers.IntegerField(source="pk")
    run_id = serializers.IntegerField()
    user_id = serializers.CharField(source="run.end_user.user_id", allow_null=True)


class EventQuery(ListQuery):
    """The query of the account's events."""

    run = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    agent_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    type = Text(required=False, allow_blank=False)
