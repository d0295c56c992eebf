"""Agents, tasks, end users, tools allowed beforehand, settings, webhooks; lists over several pages."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

from m8tes import M8tes, Webhooks


def unknown(client: M8tes, names: list[str]) -> list[str]:
    """Which of these, such as `runs.create`, the SDK does not have."""
    return [name for name in names if not callable(operator.attrgetter(name)(client))]


def agents(client: M8tes) -> dict[str, Any]:
    made = client.agents.create(
        name="Embedded",
        instructions="Be brief.",
        tools=["desk"],
        default_permission_mode="approval",
        metadata={"team": "north"},
    )
    changed = client.agents.update(made.id, name="Embedded, renamed")
    found = client.agents.get(made.id)
    client.agents.delete(made.id)
    return {
        "made": [made.name, made.tools, made.default_permission_mode, made.status],
        "changed": [changed.name, changed.instructions],
        "found": found.name,
        "left": made.id in [agent.id for agent in client.agents.list().auto_paging_iter()],
    }


def tasks(client: M8tes, agent_id: int) -> dict[str, Any]:
    task = client.tasks.create(agent_id=agent_id, name="Weekly", instructions="go")
    run = client.tasks.run(task.id, stream=False, metadata={"ticket": "T-82"})
    ended = client.runs.poll(run.id, interval=0.2, timeout=60)
    waited = client.tasks.run_and_wait(task.id, poll_interval=0.2)
    runs = client.runs.list(task_id=task.id).data
    client.tasks.update(task.id, name="Every week")
    names = [client.tasks.get(task.id).name, client.tasks.list(agent_id=agent_id).data[0].name]
    client.tasks.delete(task.id)
    return {
        "task": [task.agent_id, task.instructions],
        "run": [run.status, run.task_id == task.id, run.metadata],
        "ended": [ended.status, ended.output],
        "waited": waited.status,
        "runs": len(runs),
        "names": names,
        "left": task.id in [each.id for each in client.tasks.list()],
    }


def users(client: M8tes, user_id: str) -> dict[str, Any]:
    made = client.users.create(user_id=user_id, name="Ann", metadata={"plan": "free"})
    changed = client.users.update(user_id, company="Northwind", metadata={"plan": "pro"})
    found = client.users.get(user_id)
    client.users.delete(user_id)
    return {
        "made": [made.user_id, made.name],
        "changed": [changed.company, changed.name, changed.metadata],
        "found": found.id == made.id,
        "left": user_id in [user.user_id for user in client.users.list().auto_paging_iter()],
    }


def permissions(client: M8tes, user_id: str) -> dict[str, Any]:
    first = client.permissions.create(user_id=user_id, tool="slack")
    again = client.permissions.create(user_id=user_id, tool="slack")
    listed = [
        (policy.tool_name, policy.user_id, policy.source)
        for policy in client.permissions.list(user_id=user_id)
    ]
    others = [policy.id for policy in client.permissions.list()]
    client.permissions.delete(first.id, user_id=user_id)
    return {
        "same": first.id == again.id,
        "listed": listed,
        "in the account's scope": first.id in others,
        "left": [policy.id for policy in client.permissions.list(user_id=user_id)],
    }


def settings(client: M8tes) -> list[Any]:
    before = client.settings.get()
    after = client.settings.update(require_end_user_id=True)
    client.settings.update(require_end_user_id=False)
    return [before.require_end_user_id, after.require_end_user_id, before.retention_mode]


def mode(client: M8tes, run_id: int) -> list[Any]:
    """A call that waits is let through by the change; gives the mode, and what came of the run."""
    answer = client.runs.update_permission_mode(run_id, permission_mode="autonomous")
    run = client.runs.poll(run_id, interval=0.2, timeout=60)
    return [answer.permission_mode, run.status, [each.status for each in client.runs.permissions(run_id)]]


def paging(client: M8tes, agent_id: int, runs: int) -> dict[str, Any]:
    """Several runs, and their lists in pages of two."""
    made = [client.runs.create(agent_id=agent_id, message="go", stream=False).id for _ in range(runs)]
    page = client.runs.list(agent_id=agent_id, limit=2)
    return {
        "made": made,
        "page": [run.id for run in page],
        "all": [run.id for run in page.auto_paging_iter()],
        "default": len(client.runs.list(agent_id=agent_id).data),
        "for users": [run.user_id for run in client.runs.list(agent_id=agent_id, user_id="cust_9")],
        "summary": [run.output for run in client.runs.list(agent_id=agent_id, limit=1, fields="summary")],
        "files": client.runs.list_files(made[0]),
    }


def sent_twice(client: M8tes, agent_id: int) -> list[bool]:
    first, second = (
        client.runs.create(agent_id=agent_id, message="go", stream=False, idempotency_key="twice")
        for _ in range(2)
    )
    return [first.id == second.id]


def webhooks(client: M8tes, url: str) -> dict[str, Any]:
    """Add an endpoint; the secret is shown this once."""
    made = client.webhooks.create(url=url, events=["run.awaiting_input", "run.completed"])
    found = client.webhooks.get(made.id)
    return {
        "id": made.id,
        "secret": made.secret,
        "events": made.events,
        "active": made.active,
        "shown later": found.secret,
        "listed": [each.id for each in client.webhooks.list()],
    }


def verify(client: M8tes, body: str, headers: dict[str, str], secret: str) -> list[bool]:
    """A delivery as it came, with another body, with another secret, and with a body from a file, as bytes."""
    return [
        Webhooks.verify_signature(Path(body).read_bytes(), headers, secret, tolerance_seconds=300),
        Webhooks.verify_signature(Path(body).read_bytes() + b" ", headers, secret),
        Webhooks.verify_signature(Path(body).read_text(), headers, f"{secret}x"),
    ]


def deliveries(client: M8tes, webhook_id: int) -> list[Any]:
    found = client.webhooks.list_deliveries(webhook_id)
    client.webhooks.update(webhook_id, active=False)
    rotated = client.webhooks.update(webhook_id, rotate_secret=True)
    client.webhooks.delete(webhook_id)
    return [[each.event_type, each.status, each.attempts] for each in found] + [
        len(rotated.secret or "") >= 32
    ]
