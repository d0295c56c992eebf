"""Tasks over HTTP: saved, changed, and started."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from runs import access, commands, tasks
from runs.access import Actor
from runs.api import idempotency
from runs.api.base import ActorView, JsonOrEvents, check_scope, checked, list_response, of_scope
from runs.api.runs import human_input, started
from runs.models import Task
from runs.serializers import NewTask, NewTaskRun, TaskChange, TaskQuery, TaskShape

_ROWS = Task.objects.select_related("end_user")


class TaskList(ActorView):
    def get(self, request: Request) -> Response:
        """Newest first; without a `user_id` those that are for any end user."""
        query = checked(TaskQuery, request.query_params.dict())
        found = of_scope(access.visible(self.actor, _ROWS.all()), query).order_by("-pk")
        for name in ("teammate_id", "agent_id"):
            if name in query:
                found = found.filter(agent=query[name])
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        return list_response(found, query["limit"], TaskShape, lambda task: task.pk)

    def post(self, request: Request) -> Response:
        body = checked(NewTask, request.data)
        task = tasks.create(self.actor, body["agent_id"], body, user_id=body["user_id"])
        return Response(_shown(self.actor, task.pk), status=201)


class TaskDetail(ActorView):
    def get(self, request: Request, task_id: int) -> Response:
        _check(self.actor, request, task_id)
        return Response(_shown(self.actor, task_id))

    def patch(self, request: Request, task_id: int) -> Response:
        _check(self.actor, request, task_id)
        tasks.change(self.actor, task_id, checked(TaskChange, request.data))
        return Response(_shown(self.actor, task_id))

    def delete(self, request: Request, task_id: int) -> Response:
        _check(self.actor, request, task_id)
        tasks.remove(self.actor, task_id)
        return Response(status=204)


class TaskRuns(ActorView):
    content_negotiation_class = JsonOrEvents

    def post(self, request: Request, task_id: int) -> HttpResponseBase:
        """Start a run of the task, as `RunList.post` starts one of an agent."""
        access.get(self.actor, _ROWS.all(), pk=task_id)
        body = checked(NewTaskRun, request.data)
        receipt = idempotency.once(
            self.actor,
            request,
            lambda: commands.run_task(
                self.actor,
                task_id,
                mode=body["permission_mode"],
                human_input=human_input(body),
                user_id=body["user_id"],
                metadata=body["metadata"],
            ).turns.get(),
        )
        return started(self.actor, receipt, stream=bool(body["stream"]))


def _check(actor: Actor, request: Request, task_id: int) -> None:
    check_scope(request, access.get(actor, _ROWS.all(), pk=task_id).end_user)


def _shown(actor: Actor, task_id: int) -> dict[str, Any]:
    return dict(TaskShape(access.get(actor, _ROWS.all(), pk=task_id)).data)
