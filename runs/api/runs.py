"""Runs over HTTP. Each view parses, calls a service, and shows the row as it is then."""

from __future__ import annotations

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response

from runs import access, commands
from runs.access import Actor
from runs.api import idempotency, run_rows
from runs.api.base import ActorView, JsonOrEvents, Paging, check_scope, checked, list_response, run_of
from runs.api.stream import stream_response
from runs.control import Overrides, Submission
from runs.errors import ModelValidationError
from runs.idempotency import Receipt
from runs.models import Event, Run, Turn
from runs.run_states import HumanInput, TurnStatus
from runs.serializers import EventShape, NewMessage, NewRun, RunLine, RunQuery, RunShape

VIA = "api"

_SHAPE = RunShape()
"""Made once: the framework copies every field for each new one, which costs more than showing a run."""


class FilesNotSupported(ModelValidationError):
    """A message came with files."""

    code = "files_not_supported"


class RunList(ActorView):
    content_negotiation_class = JsonOrEvents

    def get(self, request: Request) -> Response:
        """The account's runs, newest first; without a `user_id` those that are for no end user."""
        query = checked(RunQuery, request.query_params.dict())
        shape = RunLine if "fields" in query else RunShape
        return list_response(run_rows.page(self.actor, query), query["limit"], shape, lambda run: run.pk)

    def post(self, request: Request) -> HttpResponseBase:
        """Start a run; it is answered at once, before anything of it has happened."""
        body = checked(NewRun, request.data)
        submission = Submission(
            message=body["message"],
            mode=body["permission_mode"],
            human_input=human_input(body),
            user_id=body["user_id"],
            tools=body["tools"],
            metadata=body["metadata"] or {},
        )
        receipt = idempotency.once(
            self.actor,
            request,
            lambda: commands.start_run(self.actor, body["agent_id"], submission).turns.get(),
        )
        return started(self.actor, receipt, stream=bool(body["stream"]))


class RunDetail(ActorView):
    def get(self, request: Request, run_id: int) -> Response:
        run = run_rows.one(self.actor, run_id)
        check_scope(request, run.end_user)
        return Response(_SHAPE.to_representation(run))


class RunCancel(ActorView):
    def post(self, request: Request, run_id: int) -> Response:
        run_of(self.actor, request, run_id)
        commands.cancel_run(self.actor, run_id, via=VIA)
        return Response(shown(self.actor, run_id))


class RunReply(ActorView):
    content_negotiation_class = JsonOrEvents

    def post(self, request: Request, run_id: int) -> HttpResponseBase:
        """Open the next turn; the run has its new status before this answers (m8tes-http 5.8)."""
        run_of(self.actor, request, run_id)
        body = checked(NewMessage, request.data)
        overrides = Overrides(
            mode=body["permission_mode"], human_input=human_input(body), tools=body["tools"] or None
        )
        receipt = idempotency.once(
            self.actor,
            request,
            lambda: commands.reply(self.actor, run_id, body["message"], overrides),
        )
        return _answer(
            self.actor,
            receipt,
            stream=bool(body["stream"]),
            status=200,
            more=_delivery(receipt.turn),
        )


class RunEvents(ActorView):
    def get(self, request: Request, run_id: int) -> Response:
        """What happened in the run, oldest first; the cursor is the sequence number, so it never skips."""
        run = run_of(self.actor, request, run_id)
        query = checked(Paging, request.query_params.dict())
        events = Event.objects.filter(run=run, seq__gt=query.get("starting_after", 0)).order_by("seq")
        return list_response(events, query["limit"], EventShape, lambda event: event.seq)


class RunFiles(ActorView):
    def get(self, request: Request, run_id: int) -> Response:
        """A bare array, as clients expect it (m8tes-http 1.12); runs here make no files."""
        run_of(self.actor, request, run_id)
        return Response([])


class WithFiles(ActorView):
    def post(self, request: Request, run_id: int | None = None) -> Response:
        """Refused before the body is read: nothing here could read a file."""
        raise FilesNotSupported(
            "Files cannot be sent with a message here. Leave them out; nothing was started."
        )


def started(actor: Actor, receipt: Receipt, *, stream: bool) -> HttpResponseBase:
    """The answer to whatever started a run."""
    return _answer(actor, receipt, stream=stream, status=201, more={})


def shown(actor: Actor, run_id: int) -> dict[str, Any]:
    """The run as it is now. Raises NotFound."""
    return dict(_SHAPE.to_representation(run_rows.one(actor, run_id)))


def human_input(body: dict[str, Any]) -> HumanInput | None:
    """What `human_in_the_loop` of a checked body means (design section 2)."""
    asked: bool | None = body["human_in_the_loop"]
    return None if asked is None else HumanInput.MANAGED if asked else HumanInput.FAIL


def _answer(
    actor: Actor, receipt: Receipt, *, stream: bool, status: int, more: dict[str, Any]
) -> HttpResponseBase:
    """A stream if one was asked for; a replay is JSON all the same, whose reader knows where to look (1.10)."""
    run_id = receipt.turn.run_id
    if stream and not receipt.replayed:
        return stream_response(actor, access.get(actor, Run.objects.all(), pk=run_id))
    response = Response({**shown(actor, run_id), **more}, status=200 if receipt.replayed else status)
    if receipt.replayed:
        response[idempotency.REPLAYED] = "true"
    return response


def _delivery(turn: Turn) -> dict[str, Any]:
    """Whether a reply's turn is the run's next, or waits for the ones before it (m8tes-http 5.8)."""
    before = Turn.objects.filter(run=turn.run_id, index__lt=turn.index)
    unfinished = Turn.objects.filter(pk=turn.pk).exclude(status=TurnStatus.FINISHED.value)
    if unfinished.exists() and before.exclude(status=TurnStatus.FINISHED.value).exists():
        return {"delivery": "queued", "queued_message_id": turn.index}
    return {"delivery": "resumed", "queued_message_id": None}
