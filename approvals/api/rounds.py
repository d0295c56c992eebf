"""Pauses over HTTP: list them, look at one, answer it, give it more time; and the mode of a run."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import ValidationError

from approvals.deadlines import extend
from approvals.decisions import Remember, decide, save_draft, switch_mode
from approvals.serializers import Answer, Draft, NewMode, RoundLine, RoundQuery, RoundShape, Shown
from runs import access
from runs.access import Actor
from runs.api.base import ActorView, check_scope, checked, list_response, run_of
from runs.models import Round
from runs.models.round import RoundQuerySet

VIA = "api"

_LINE = (
    "account",
    "kind",
    "status",
    "outcome",
    "server_name",
    "operation_name",
    "version",
    "deadline",
    "continue_at",
    "created_at",
    "updated_at",
    "response_validated_at",
    "failed_at",
    "decided_via",
    "decided_by__username",
    "run__agent",
    "run__end_user__user_id",
)
"""The columns of a line: arguments, schemas and answers may be large and stay where they are."""

_FILTERS = {
    "kind": "kind",
    "run": "run",
    "agent_id": "run__agent",
    "user_id": "run__end_user__user_id",
    "server": "server_name",
}
"""What the list can be narrowed to, and the column that it is about."""


class RoundList(ActorView):
    def get(self, request: Request) -> Response:
        """Newest first; only what waits, unless `status=all`."""
        query = checked(RoundQuery, request.query_params.dict())
        rounds = Round.objects.filter(account=self.actor.account)
        if query["status"] == Shown.PENDING:
            rounds = rounds.pending()
        rounds = rounds.filter(**{_FILTERS[name]: query[name] for name in _FILTERS.keys() & query.keys()})
        if "starting_after" in query:
            rounds = _older(self.actor, rounds, query["starting_after"])
        lines = (
            rounds.select_related("run__end_user", "decided_by").only(*_LINE).order_by("-created_at", "-pk")
        )
        return list_response(lines, query["limit"], RoundLine, lambda round_: round_.pk)


class RoundDetail(ActorView):
    def get(self, request: Request, round_id: str) -> Response:
        return Response(RoundShape(_round(self.actor, request, round_id)).data)


class RoundRespond(ActorView):
    def post(self, request: Request, round_id: str) -> Response:
        """Answer the pause, with the refusals of the page; the same key and body again gets the same receipt."""
        _round(self.actor, request, round_id)
        body = checked(Answer, request.data)
        decide(
            self.actor,
            round_id,
            body["responses"],
            idempotency_key=body["idempotency_key"],
            shown_digest=body["shown_digest"],
            remember=_remember(body["remember"]),
            note=body["note"],
            via=VIA,
        )
        return Response(_shown(self.actor, round_id))


class RoundDraft(ActorView):
    def post(self, request: Request, round_id: str) -> Response:
        """Keep the answer to one of several requests; with the last one the pause is answered (A21)."""
        _round(self.actor, request, round_id)
        body = checked(Draft, request.data)
        save_draft(self.actor, round_id, body["key"], body["response"], via=VIA)
        return Response(_shown(self.actor, round_id))


class RoundExtend(ActorView):
    def post(self, request: Request, round_id: str) -> Response:
        """A quarter of an hour more, counted from the present end (R32)."""
        _round(self.actor, request, round_id)
        extend(self.actor, round_id)
        return Response(_shown(self.actor, round_id))


class RunPermissionMode(ActorView):
    def patch(self, request: Request, run_id: int) -> Response:
        run_of(self.actor, request, run_id)
        body = checked(NewMode, request.data)
        run = switch_mode(self.actor, run_id, body["permission_mode"], via=VIA)
        return Response({"permission_mode": run.mode})


def _older(actor: Actor, rounds: RoundQuerySet, last: str) -> RoundQuerySet:
    """What comes after the pause `last`, which may have been decided since and left the list."""
    mark = access.visible(actor, Round.objects.all()).filter(pk=last).only("created_at").first()
    if mark is None:
        raise ValidationError({"starting_after": ["There is no such pause."]})
    return rounds.filter(Q(created_at__lt=mark.created_at) | Q(created_at=mark.created_at, pk__lt=mark.pk))


def _remember(body: dict[str, Any] | None) -> Remember | None:
    """A confirmation is of what was shown, so one digest says both."""
    if body is None:
        return None
    shown: str | None = body["confirmation"]
    return Remember(
        scope=body["scope"],
        days=body["days"],
        exactly=body["exactly"],
        shown=shown,
        confirmed=shown is not None,
    )


def _round(actor: Actor, request: Request, round_id: str) -> Round:
    """The pause that the address names. Raises NotFound as `check_scope` does for its run."""
    round_ = _of(actor, round_id)
    check_scope(request, round_.run.end_user)
    return round_


def _shown(actor: Actor, round_id: str) -> dict[str, Any]:
    return dict(RoundShape(_of(actor, round_id)).data)


def _of(actor: Actor, round_id: str) -> Round:
    return access.get(actor, Round.objects.select_related("run__end_user", "decided_by"), pk=round_id)
