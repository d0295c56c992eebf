"""Pauses as m8tes clients know them: list the permission requests of a run, allow or deny one, answer one."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from approvals.answering import answer
from approvals.approving import approve
from approvals.run_requests import all_requests
from approvals.serializers import Decision, PermissionRequestShape, QuestionAnswers
from runs import access
from runs.api.base import ActorView, check_scope, checked
from runs.models import Run

VIA = "api"


class _OfRun(ActorView):
    """A view of one run, whose `?user_id=`, if there is one, is that of the run."""

    def run_of(self, request: Request, run_id: int) -> Run:
        run = access.get(
            self.actor, Run.objects.select_related("agent", "task", "account", "end_user"), pk=run_id
        )
        check_scope(request, run.end_user)
        return run


class RunPermissions(_OfRun):
    def get(self, request: Request, run_id: int) -> Response:
        """A bare array of all requests in every state, oldest first (m8tes-http 1.12)."""
        requests = all_requests(self.run_of(request, run_id))
        shape = PermissionRequestShape()
        return Response([shape.to_representation(each) for each in requests])


class RunApprove(_OfRun):
    def post(self, request: Request, run_id: int) -> Response:
        """Allow or deny; the request and the run have changed before this answers (m8tes-http 4.2)."""
        run = self.run_of(request, run_id)
        body = checked(Decision, request.data)
        decided = approve(
            self.actor,
            run.pk,
            body["request_id"],
            body["decision"],
            remember=bool(body["remember"]),
            reason=body["reason"] or "",
            via=VIA,
        )
        shape = PermissionRequestShape(decided.request, context={"resumed": decided.resumed})
        return Response(shape.data)


class RunAnswer(_OfRun):
    def post(self, request: Request, run_id: int) -> Response:
        """Answer a question, a plan or a form (m8tes-http 4.1)."""
        run = self.run_of(request, run_id)
        body = checked(QuestionAnswers, request.data)
        resumed = answer(self.actor, run.pk, body["answers"], request_id=body["request_id"], via=VIA)
        return Response({"status": "ok", "resumed": resumed})
