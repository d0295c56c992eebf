"""The addresses of the API, and what stands at every other one.

Collections end in a slash, items and actions never do, and nothing redirects: a client that follows a redirect
turns a POST into a GET, an approval into a read (m8tes-http 1.5, m8tes-http 8.1).
"""

from __future__ import annotations

from typing import Any

from django.urls import Resolver404, path, re_path, resolve
from rest_framework.request import Request
from rest_framework.views import APIView

from approvals.api import end_users, policies, requests, rounds
from m3web.api import docs, schema
from runs.api import agents, events, runs, servers, settings, stream, tasks, users, webhooks
from runs.errors import NotFound


class NothingHere(APIView):
    """Every address under /api/ that is not ours: a 404 in the API's shape, whoever asks and by any method."""

    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(f"There is nothing at this address.{_hint(request.path_info)}")


def _hint(address: str) -> str:
    """What was probably meant, when only the slash at the end is wrong."""
    other = address.removesuffix("/") if address.endswith("/") else f"{address}/"
    try:
        view = getattr(resolve(other).func, "view_class", NothingHere)
    except Resolver404:
        return ""
    if view is NothingHere:
        return ""
    return f" Collections end in a slash, items and actions do not: try {other}"


urlpatterns = [
    path("agents/", agents.AgentList.as_view(), name="api-agents"),
    path("agents/<int:agent_id>", agents.AgentDetail.as_view(), name="api-agent"),
    path("docs", docs.page, name="api-docs"),
    path("events/", events.EventList.as_view(), name="api-events"),
    path("permissions/", policies.PolicyList.as_view(), name="api-permissions"),
    path("permissions/<int:policy_id>", policies.PolicyDetail.as_view(), name="api-permission"),
    path("rounds/", rounds.RoundList.as_view(), name="api-rounds"),
    path("rounds/<str:round_id>", rounds.RoundDetail.as_view(), name="api-round"),
    path("rounds/<str:round_id>/draft", rounds.RoundDraft.as_view(), name="api-round-draft"),
    path("rounds/<str:round_id>/extend", rounds.RoundExtend.as_view(), name="api-round-extend"),
    path("rounds/<str:round_id>/respond", rounds.RoundRespond.as_view(), name="api-round-respond"),
    path("runs/", runs.RunList.as_view(), name="api-runs"),
    path("runs/<int:run_id>", runs.RunDetail.as_view(), name="api-run"),
    path("runs/with-files", runs.WithFiles.as_view(), name="api-runs-with-files"),
    path("runs/<int:run_id>/answer", requests.RunAnswer.as_view(), name="api-run-answer"),
    path("runs/<int:run_id>/approve", requests.RunApprove.as_view(), name="api-run-approve"),
    path("runs/<int:run_id>/cancel", runs.RunCancel.as_view(), name="api-run-cancel"),
    path("runs/<int:run_id>/events", runs.RunEvents.as_view(), name="api-run-events"),
    path("runs/<int:run_id>/files", runs.RunFiles.as_view(), name="api-run-files"),
    path(
        "runs/<int:run_id>/permission-mode",
        rounds.RunPermissionMode.as_view(),
        name="api-run-permission-mode",
    ),
    path("runs/<int:run_id>/permissions", requests.RunPermissions.as_view(), name="api-run-permissions"),
    path("runs/<int:run_id>/reply", runs.RunReply.as_view(), name="api-run-reply"),
    path("runs/<int:run_id>/reply/with-files", runs.WithFiles.as_view(), name="api-run-reply-with-files"),
    path("runs/<int:run_id>/stream", stream.RunStream.as_view(), name="api-run-stream"),
    path("schema", schema.schema, name="api-schema"),
    path("servers/", servers.ServerList.as_view(), name="api-servers"),
    path("servers/entries", servers.EntryList.as_view(), name="api-server-entries"),
    path("servers/<int:server_id>", servers.ServerDetail.as_view(), name="api-server"),
    path("servers/<int:server_id>/test", servers.ServerTest.as_view(), name="api-server-test"),
    path("servers/<int:server_id>/tools", servers.ToolList.as_view(), name="api-server-tools"),
    path(
        "servers/<int:server_id>/tools/<int:tool_id>",
        servers.ToolDetail.as_view(),
        name="api-server-tool",
    ),
    path("settings/", settings.Settings.as_view(), name="api-settings"),
    path("tasks/", tasks.TaskList.as_view(), name="api-tasks"),
    path("tasks/<int:task_id>", tasks.TaskDetail.as_view(), name="api-task"),
    path("tasks/<int:task_id>/runs", tasks.TaskRuns.as_view(), name="api-task-runs"),
    path("users/", users.UserList.as_view(), name="api-users"),
    path("users/<path:user_id>", end_users.UserDetail.as_view(), name="api-user"),
    path("webhooks/", webhooks.WebhookList.as_view(), name="api-webhooks"),
    path("webhooks/<int:webhook_id>", webhooks.WebhookDetail.as_view(), name="api-webhook"),
    path(
        "webhooks/<int:webhook_id>/deliveries",
        webhooks.WebhookDeliveries.as_view(),
        name="api-webhook-deliveries",
    ),
    path(
        "webhooks/<int:webhook_id>/deliveries/<int:delivery_id>/redeliver",
        webhooks.WebhookRedeliver.as_view(),
        name="api-webhook-redeliver",
    ),
    re_path("", NothingHere.as_view()),
]
