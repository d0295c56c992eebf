"""Pages of runs, agents and servers."""

from __future__ import annotations

from django.urls import path

from runs.views import agents, keys, runs, servers

urlpatterns = [
    path("runs", runs.run_list, name="run-list"),
    path("runs/start", runs.run_start, name="run-start"),
    path("runs/<int:run_id>", runs.run_detail, name="run-detail"),
    path("runs/<int:run_id>/timeline", runs.run_timeline, name="run-timeline"),
    path("runs/<int:run_id>/cancel", runs.run_cancel, name="run-cancel"),
    path("runs/<int:run_id>/reply", runs.run_reply, name="run-reply"),
    path("runs/<int:run_id>/steps/<int:step>/<slug:part>.txt", runs.run_text, name="run-text"),
    path("runs/<int:run_id>/output/<int:seq>.txt", runs.run_output, name="run-output"),
    path("agents", agents.agent_list, name="agent-list"),
    path("agents/new", agents.agent_create, name="agent-create"),
    path("agents/<int:agent_id>", agents.agent_detail, name="agent-detail"),
    path("agents/<int:agent_id>/edit", agents.agent_edit, name="agent-edit"),
    path("keys", keys.key_list, name="key-list"),
    path("keys/<int:key_id>/revoke", keys.key_revoke, name="key-revoke"),
    path("servers", servers.server_list, name="server-list"),
    path("servers/new", servers.server_create, name="server-create"),
    path("servers/<int:server_id>", servers.server_detail, name="server-detail"),
    path("servers/<int:server_id>/edit", servers.server_edit, name="server-edit"),
    path("servers/<int:server_id>/trust", servers.server_trust, name="server-trust"),
    path("servers/<int:server_id>/test", servers.server_test, name="server-test"),
    path("servers/<int:server_id>/remove", servers.server_remove, name="server-remove"),
    path(
        "servers/<int:server_id>/tools/<int:tool_id>/words",
        servers.server_tool_words,
        name="server-tool-words",
    ),
]
