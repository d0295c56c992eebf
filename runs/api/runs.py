"""Runs over HTTP. Each view parses, calls a service, and shows the row as it is then."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from runs import access, commands
from runs.access import Actor
from runs.api.base import ActorView, Paging, checked, list_response
from runs.control import Submission
from runs.models import Event, Run
from runs.run_states import HumanInput
from runs.serializers import EventShape, NewMessage, NewRun, RunShape

VIA = "api"


class RunList(ActorView):
    def get(self, request: Request) -> Response:
        """The account's runs, newest first."""
        query = checked(Paging, request.query_params.dict())
        runs = access.visible(self.actor, Run.objects.select_related("end_user")).order_by("-pk")
        if (after := query.get("starting_after")) is not None:
            runs = runs.filter(pk__lt=after)
        return list_response(runs, query["limit"], RunShape, lambda run: run.pk)

    def post(self, request: Request) -> Response:
        """Start a run; it is answered at once, before anything of it has happened."""
        body = checked(NewRun, request.data)
        run = commands.start_run(self.actor, body["agent_id"], _submission(body))
        return Response(_shown(self.actor, run.pk), status=201)


class RunDetail(ActorView):
    def get(self, request: Request, run_id: int) -> Response:
        return Response(_shown(self.actor, run_id))


class RunCancel(ActorView):
    def post(self, request: Request, run_id: int) -> Response:
        commands.cancel_run(self.actor, run_id, via=VIA)
        return Response(_shown(self.actor, run_id))


class RunReply(ActorView):
    def post(self, request: Request, run_id: int) -> Response:
        """Open the next turn; the run has its new status before this answers (m8tes-http 5.8)."""
        body = checked(NewMessage, request.data)
        commands.reply(self.actor, run_id, body["message"])
        return Response(_shown(self.actor, run_id))


class RunEvents(ActorView):
    def get(self, request: Request, run_id: int) -> Response:
        """What happened in the run, oldest first; the cursor is the sequence number, so it never skips."""
        run = access.get(self.actor, Run.objects.all(), pk=run_id)
        query = checked(Paging, request.query_params.dict())
        events = Event.objects.filter(run=run, seq__gt=query.get("starting_after", 0)).order_by("seq")
        return list_response(events, query["limit"], EventShape, lambda event: event.seq)


def _shown(actor: Actor, run_id: int) -> dict[str, Any]:
    run = access.get(actor, Run.objects.select_related("end_user"), pk=run_id)
    return dict(RunShape(run).data)


def _submission(body: dict[str, Any]) -> Submission:
    human: bool | None = body["human_in_the_loop"]
    return Submission(
        message=body["message"],
        mode=body["permission_mode"],
        human_input=None if human is None else HumanInput.MANAGED if human else HumanInput.FAIL,
        user_id=body["user_id"],
        tools=body["tools"],
        metadata=body["metadata"],
    )
