"""What the API takes and shows of pauses. Never a lease, a protocol state or a resume token (C8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from rest_framework import serializers

from approvals.approving import Verdict
from approvals.changes import drifted_of, show
from approvals.facts import Scope
from approvals.models import Policy
from approvals.permission_requests import PermissionRequest
from approvals.rules import MAX_DAYS, rule_sentence
from runs.api.base import MAX_ID, Limited
from runs.api.fields import Flag, Text, Whole, Word
from runs.end_users import MAX_USER_ID
from runs.idempotency import MAX_KEY
from runs.models import Round
from runs.readable import check_readable
from runs.requests import MAX_WORDS
from runs.round_states import RoundKind, RoundOutcome, RoundStatus
from runs.run_states import PermissionMode

MAX_REQUEST_ID = 3_000
"""Characters of a request's id; the key of a server's request may be part of it."""

MAX_TARGET = 300
"""Characters of `server:tool`."""

_REQUEST: Final = ("request_key", "mode", "message", "requested_schema", "url", "elicitation_id")
_CALL: Final = ("tool", "server_address", "mode")
_CONTEXT: Final[Mapping[str, tuple[str, ...]]] = {
    RoundKind.APPROVAL: (
        *_CALL,
        "title",
        "description",
        "arguments",
        "input_schema",
        "verdict",
        "last_allowed",
        "remembered",
        "allowed_by",
    ),
    RoundKind.ELICITATION: _CALL,
    RoundKind.QUESTION: ("questions", "mode"),
    RoundKind.PLAN: ("text", "revision", "feedback", "mode"),
    RoundKind.OUTCOME: (*_CALL, "arguments", "reason"),
}
"""What a card shows of each kind. A list of names, so that what is stored later does not appear by itself."""


class Shown(StrEnum):
    """Which pauses a list holds."""

    PENDING = "pending"
    ALL = "all"


class RoundQuery(Limited):
    """The query of the list; pauses have text for ids."""

    starting_after = Text(max_length=64, required=False, allow_blank=False)
    kind = Word(RoundKind, required=False)
    run = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    agent_id = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)
    user_id = Text(required=False, allow_blank=False)
    server = Text(required=False, allow_blank=False)
    status = Word(Shown, default=Shown.PENDING.value)


class RoundLine(serializers.Serializer[Round]):
    """A pause in a list: what it is, where it stands, and who ended it."""

    id = serializers.CharField(source="pk")
    kind = Word(RoundKind)
    status = Word(RoundStatus)
    outcome = Word(RoundOutcome, allow_null=True)
    run_id = serializers.IntegerField()
    agent_id = serializers.IntegerField(source="run.agent_id")
    user_id = serializers.CharField(source="run.end_user.user_id", allow_null=True)
    operation = serializers.SerializerMethodField()
    version = serializers.IntegerField()
    deadline = serializers.DateTimeField(allow_null=True)
    continue_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    decided_by = serializers.CharField(source="decided_by.username", allow_null=True)
    decided_via = serializers.SerializerMethodField()
    decided_at = serializers.SerializerMethodField()

    def get_operation(self, round_: Round) -> str | None:
        """The full name of the tool, prompt or resource that asks; null where the agent itself does."""
        return f"{round_.server_name}:{round_.operation_name}" if round_.operation_name else None

    def get_decided_via(self, round_: Round) -> str | None:
        return round_.decided_via or None

    def get_decided_at(self, round_: Round) -> dt.datetime | None:
        if round_.status == RoundStatus.PENDING:
            return None
        return round_.response_validated_at or round_.failed_at or round_.updated_at


class RoundShape(RoundLine):
    """A pause in full: everything that its card shows, and what an answer must carry."""

    shown_digest = serializers.CharField()
    requests = serializers.SerializerMethodField()
    changes = serializers.SerializerMethodField()
    context = serializers.SerializerMethodField()  # type: ignore[assignment]  # a field, not the base's attribute
    drafts = serializers.DictField(child=serializers.DictField())
    responses = serializers.DictField(child=serializers.DictField(), allow_null=True)
    note = serializers.CharField()
    failure_code = serializers.CharField(allow_null=True)
    failure_message = serializers.CharField(allow_null=True)

    def get_requests(self, round_: Round) -> dict[str, dict[str, Any]]:
        check_readable(round_, round_.pk)
        return {key: _only(_REQUEST, request) for key, request in round_.requests.items()}

    def get_changes(self, round_: Round) -> dict[str, Any] | None:
        """What has changed of the tool or its server, where an approval asks because of it; null elsewhere (R28)."""
        drifted = drifted_of(round_.context) if round_.kind == RoundKind.APPROVAL else None
        if drifted is None:
            return None
        return show(round_.account_id, round_.server_name, drifted).as_json()

    def get_context(self, round_: Round) -> dict[str, Any]:
        return _only(_CONTEXT[round_.kind], round_.context)


class RememberBody(serializers.Serializer[Any]):
    """What to remember with an allowed call: for whom, for how many days (null: until revoked), and whether only with
    exactly these arguments. `confirmation` is the digest that a refusal gave, sent once a person has seen what for.
    """

    scope = Word(Scope)
    days = Whole(required=False, allow_null=True, default=None, min_value=1, max_value=MAX_DAYS)
    exactly = Flag(required=False, default=False)
    confirmation = Text(required=False, allow_null=True, allow_blank=False, default=None)


class Draft(serializers.Serializer[Any]):
    """The body that answers one request of a pause; the last one answers the whole pause (A21)."""

    key = Text()
    response = serializers.DictField()


class Answer(serializers.Serializer[Any]):
    """The body that answers a pause: exactly its keys, each with an action and, on accept, content."""

    responses = serializers.DictField(child=serializers.DictField(), allow_empty=False)
    remember = RememberBody(required=False, allow_null=True, default=None)
    idempotency_key = Text(allow_blank=False, max_length=MAX_KEY)
    shown_digest = Text(required=False, allow_null=True, default=None)
    note = Text(required=False, default="")


class NewMode(serializers.Serializer[Any]):
    """The body that switches a run's permission mode."""

    permission_mode = Word(PermissionMode)


class PermissionRequestShape(serializers.Serializer[PermissionRequest]):
    """A pause, or one part of it, as m8tes clients know it (m8tes-http 2)."""

    request_id = serializers.CharField()
    tool_name = serializers.CharField()
    tool_input = serializers.JSONField(allow_null=True)
    status = serializers.CharField()
    created_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(allow_null=True)
    tool_use_id = serializers.CharField(allow_null=True)
    auto_resolved = serializers.BooleanField()
    resumed = serializers.SerializerMethodField()
    remembered = serializers.BooleanField(allow_null=True)
    agent_type = serializers.CharField(allow_null=True)
    display_name = serializers.CharField()
    mate_name = serializers.CharField(allow_null=True)
    task_name = serializers.CharField(allow_null=True)
    consequence = serializers.CharField()
    ask_reason = serializers.CharField()
    surface = serializers.CharField()
    surface_label = serializers.CharField(allow_null=True)
    # A field of this name, not the base's attribute; its getter cannot have the usual name either.
    fields = serializers.SerializerMethodField("get_labelled")  # type: ignore[assignment]
    prose = serializers.CharField(allow_null=True)
    can_remember = serializers.BooleanField()
    remember_default = serializers.BooleanField()
    timeout_seconds = serializers.IntegerField(allow_null=True)
    script = serializers.JSONField(allow_null=True)

    def get_resumed(self, _request: PermissionRequest) -> bool | None:
        """Only a decision says it; a list resumes nothing."""
        return self.context.get("resumed")

    def get_labelled(self, request: PermissionRequest) -> list[list[str]]:
        return [list(pair) for pair in request.fields]


class Decision(serializers.Serializer[Any]):
    """The body that allows or denies a request."""

    request_id = Text(allow_blank=False, max_length=MAX_REQUEST_ID)
    decision = Word(Verdict)
    remember = Flag(required=False, allow_null=True, default=False)
    reason = Text(required=False, allow_null=True, default="", max_length=MAX_WORDS)


class QuestionAnswers(serializers.Serializer[Any]):
    """The body that answers: by the text of each question a label or text, in forms also a JSON value."""

    answers = serializers.DictField(allow_empty=False)
    request_id = Text(
        required=False, allow_null=True, default=None, allow_blank=False, max_length=MAX_REQUEST_ID
    )


class PolicyShape(serializers.Serializer[Policy]):
    """A standing allow rule; `rule` is the sentence that says all of it, also what a condition limits it to."""

    id = serializers.IntegerField(source="pk")
    user_id = serializers.CharField(source="end_user.user_id", allow_null=True)
    tool_name = serializers.CharField(source="target")
    created_at = serializers.DateTimeField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field, not the base's attribute
    rule = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField(allow_null=True)

    def get_rule(self, policy: Policy) -> str:
        return rule_sentence(policy)


class NewPolicy(serializers.Serializer[Any]):
    """The body that allows a tool beforehand, for one end user's runs or for those that carry none."""

    tool = Text(allow_blank=False, max_length=MAX_TARGET)
    user_id = Text(required=False, allow_null=True, default=None, allow_blank=False, max_length=MAX_USER_ID)


def _only(names: tuple[str, ...], facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in names if name in facts}
