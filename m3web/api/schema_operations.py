"""What each address of the API takes, answers and refuses: the facts of its OpenAPI description.

The bodies and answers are the serializers that the views use themselves; tests compare this table with the routes and
with docs/api.md, and call every address to see whether it is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rest_framework import serializers

from approvals.serializers import (
    Answer,
    Decision,
    Draft,
    NewMode,
    NewPolicy,
    PermissionRequestShape,
    PolicyShape,
    QuestionAnswers,
    RoundLine,
    RoundQuery,
    RoundShape,
)
from runs import serializers as shapes
from runs.api.base import ListQuery, Paging, Scope

Shape = type[serializers.Serializer[Any]]


class Resumed(serializers.Serializer[Any]):
    """What an answer to a question brought about; `resumed`: the run goes on."""

    status = serializers.ChoiceField(choices=["ok"])
    resumed = serializers.BooleanField()


class FileShape(serializers.Serializer[Any]):
    """A file of a run."""

    name = serializers.CharField()
    size = serializers.IntegerField()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one address.

    `answer` is None for an answer without a body. `page` puts it into the list envelope, `array` into a bare array;
    `line` is what a page shows instead if the query asks for less;
    `streams` says that it may come as server-sent events. `conflicts` is whether the state of things may forbid it;
    `once` whether an idempotency key is taken; `refused` are the only statuses of what is never carried out.
    """

    says: str
    answer: Shape | None = None
    body: Shape | None = None
    query: Shape | None = None
    status: int = 200
    line: Shape | None = None
    page: bool = False
    array: bool = False
    streams: bool = False
    conflicts: bool = False
    once: bool = False
    refused: tuple[int, ...] = ()


def _list(says: str, answer: Shape, query: Shape, line: Shape | None = None) -> Operation:
    return Operation(says=says, answer=answer, query=query, page=True, line=line)


def _made(says: str, body: Shape, answer: Shape, **more: Any) -> Operation:
    return Operation(says=says, body=body, answer=answer, status=201, **more)


def _gone(says: str, **more: Any) -> Operation:
    return Operation(says=says, status=204, **more)


_FILES: Final = Operation(says="Refused: messages take no files here", refused=(422,))

OPERATIONS: Final[dict[str, Operation]] = {
    "GET agents/": _list("List agents", shapes.AgentShape, shapes.AgentQuery, shapes.AgentLine),
    "POST agents/": _made("Make an agent", shapes.NewAgent, shapes.AgentShape),
    "GET agents/{agent_id}": Operation(says="One agent", answer=shapes.AgentShape, query=Scope),
    "PATCH agents/{agent_id}": Operation(
        says="Change an agent", body=shapes.AgentChange, answer=shapes.AgentShape, query=Scope
    ),
    "DELETE agents/{agent_id}": _gone("Remove an agent that has never run", query=Scope, conflicts=True),
    "GET events/": _list("What happened in the account", shapes.AccountEvent, shapes.EventQuery),
    "GET permissions/": _list("List tools allowed beforehand", PolicyShape, ListQuery),
    "POST permissions/": _made("Allow a tool beforehand", NewPolicy, PolicyShape, conflicts=True),
    "DELETE permissions/{policy_id}": _gone("Take it back", query=Scope),
    "GET rounds/": _list("List pauses", RoundLine, RoundQuery),
    "GET rounds/{round_id}": Operation(says="One pause in full", answer=RoundShape, query=Scope),
    "POST rounds/{round_id}/draft": Operation(
        says="Answer one request of a pause", body=Draft, answer=RoundShape, query=Scope, conflicts=True
    ),
    "POST rounds/{round_id}/extend": Operation(
        says="Give a pause a quarter of an hour more", answer=RoundShape, query=Scope, conflicts=True
    ),
    "POST rounds/{round_id}/respond": Operation(
        says="Answer a pause", body=Answer, answer=RoundShape, query=Scope, conflicts=True
    ),
    "GET runs/": _list("List runs", shapes.RunShape, shapes.RunQuery, shapes.RunLine),
    "POST runs/": _made(
        "Start a run", shapes.NewRun, shapes.RunShape, streams=True, conflicts=True, once=True
    ),
    "POST runs/with-files": _FILES,
    "GET runs/{run_id}": Operation(says="One run", answer=shapes.RunShape, query=Scope),
    "POST runs/{run_id}/answer": Operation(
        says="Answer a question or a form", body=QuestionAnswers, answer=Resumed, query=Scope, conflicts=True
    ),
    "POST runs/{run_id}/approve": Operation(
        says="Allow or deny a call", body=Decision, answer=PermissionRequestShape, query=Scope, conflicts=True
    ),
    "POST runs/{run_id}/cancel": Operation(
        says="Cancel a run and its children", answer=shapes.RunShape, query=Scope, conflicts=True
    ),
    "GET runs/{run_id}/events": _list("What happened in a run", shapes.EventShape, ListQuery),
    "GET runs/{run_id}/files": Operation(
        says="Files of a run; there are none", answer=FileShape, query=Scope, array=True
    ),
    "PATCH runs/{run_id}/permission-mode": Operation(
        says="Switch the permission mode", body=NewMode, answer=NewMode, query=Scope, conflicts=True
    ),
    "GET runs/{run_id}/permissions": Operation(
        says="What a run asked to be permitted, oldest first",
        answer=PermissionRequestShape,
        query=Scope,
        array=True,
    ),
    "POST runs/{run_id}/reply": Operation(
        says="Open the next turn",
        body=shapes.NewMessage,
        answer=shapes.RunShape,
        query=Scope,
        streams=True,
        conflicts=True,
        once=True,
    ),
    "POST runs/{run_id}/reply/with-files": _FILES,
    "GET runs/{run_id}/stream": Operation(says="Follow a run", query=Scope, streams=True, conflicts=True),
    "GET servers/": _list("List servers", shapes.ServerShape, shapes.ServerQuery),
    "POST servers/": _made("Register a server", shapes.NewServer, shapes.ServerShape),
    "GET servers/entries": Operation(
        says="Programs that the host allows to be started", answer=shapes.EntryShape, array=True
    ),
    "GET servers/{server_id}": Operation(says="One server", answer=shapes.ServerShape),
    "PATCH servers/{server_id}": Operation(
        says="Change a server, or trust it",
        body=shapes.ServerChange,
        answer=shapes.ServerShape,
        conflicts=True,
    ),
    "DELETE servers/{server_id}": _gone("Remove a server", conflicts=True),
    "POST servers/{server_id}/test": Operation(says="Look at a server now", answer=shapes.LookShape),
    "GET servers/{server_id}/tools": _list("List the tools of a server", shapes.ToolLine, shapes.ToolQuery),
    "GET servers/{server_id}/tools/{tool_id}": Operation(says="One tool in full", answer=shapes.ToolShape),
    "PATCH servers/{server_id}/tools/{tool_id}": Operation(
        says="Say what a tool can do, or block it", body=shapes.WordChange, answer=shapes.ToolShape
    ),
    "GET settings/": Operation(says="Settings of the account", answer=shapes.SettingsShape),
    "PATCH settings/": Operation(
        says="Change settings", body=shapes.SettingsChange, answer=shapes.SettingsShape
    ),
    "GET tasks/": _list("List tasks", shapes.TaskShape, shapes.TaskQuery),
    "POST tasks/": _made("Save a task", shapes.NewTask, shapes.TaskShape),
    "GET tasks/{task_id}": Operation(says="One task", answer=shapes.TaskShape, query=Scope),
    "PATCH tasks/{task_id}": Operation(
        says="Change a task", body=shapes.TaskChange, answer=shapes.TaskShape, query=Scope
    ),
    "DELETE tasks/{task_id}": _gone("Remove a task; its runs stay", query=Scope),
    "POST tasks/{task_id}/runs": _made(
        "Start a run of a task",
        shapes.NewTaskRun,
        shapes.RunShape,
        streams=True,
        conflicts=True,
        once=True,
    ),
    "GET users/": _list("List end users", shapes.UserShape, Paging),
    "POST users/": _made("Add an end user", shapes.NewUser, shapes.UserShape, conflicts=True),
    "GET users/{user_id}": Operation(says="One end user", answer=shapes.UserShape),
    "PATCH users/{user_id}": Operation(
        says="Change an end user's profile", body=shapes.UserChange, answer=shapes.UserShape
    ),
    "DELETE users/{user_id}": _gone("Forget an end user; their runs stay", conflicts=True),
    "GET webhooks/": _list("List webhooks", shapes.WebhookShape, ListQuery),
    "POST webhooks/": _made(
        "Add a webhook; its secret is shown once", shapes.NewWebhook, shapes.NewWebhookShape
    ),
    "GET webhooks/{webhook_id}": Operation(says="One webhook", answer=shapes.WebhookShape, query=Scope),
    "PATCH webhooks/{webhook_id}": Operation(
        says="Change a webhook, or its secret",
        body=shapes.WebhookChange,
        answer=shapes.WebhookShape,
        query=Scope,
    ),
    "DELETE webhooks/{webhook_id}": _gone("Remove a webhook", query=Scope),
    "GET webhooks/{webhook_id}/deliveries": _list(
        "What was sent to a webhook", shapes.DeliveryShape, ListQuery
    ),
    "POST webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": Operation(
        says="Send it once more", answer=shapes.DeliveryShape, query=Scope, status=201, conflicts=True
    ),
}
"""By method and address under /api/v2/."""
