"""What every view of the API has: an actor whose role permits the method, checked input, one shape of lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from rest_framework import serializers
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs import access, keys
from runs.access import Actor, actor_for
from runs.api.fields import Text
from runs.errors import NotFound
from runs.models import ApiKey, EndUser, Role, Run

M = TypeVar("M", bound=Model)

MAX_ID = 2**63 - 1
"""What the database can compare an id with."""


class ActorView(APIView):
    """A view for a signed-in member of an account; whoever only looks on may read and nothing else."""

    actor: Actor
    changing: ClassVar[Role] = Role.OPERATOR
    """The least role that may do anything but read."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raises NotAuthenticated (401) for nobody, NotAllowed (403) for a role that may not."""
        super().initial(request, *args, **kwargs)
        self.actor = (
            keys.actor_of(request.auth) if isinstance(request.auth, ApiKey) else actor_for(request.user)
        )
        method = str(request.method)
        if method not in SAFE_METHODS and hasattr(self, method.lower()):  # else it is a 405, whoever asks
            self.actor.require(self.changing)

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """Which methods there are stands in the header Allow; the framework would tell of its own inside."""
        return Response(status=204)


class JsonOrEvents(DefaultContentNegotiation):
    """For a view that may answer with a stream: whoever accepts events gets JSON where there are none."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        if "text/event-stream" in request.headers.get("Accept", ""):
            return renderers[0], renderers[0].media_type
        renderer, media_type = super().select_renderer(request, renderers, format_suffix)
        return renderer, media_type


class Limited(serializers.Serializer[Any]):
    """The query of any list: how many rows."""

    limit = serializers.IntegerField(min_value=1, max_value=100, default=20)


class Paging(Limited):
    """The query of a list whose rows have numbers: after which one."""

    starting_after = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)


class Scope(serializers.Serializer[Any]):
    """The query of what may belong to an end user: whose."""

    user_id = Text(required=False, allow_blank=False)


class ListQuery(Paging, Scope):
    """The query of a list of what may belong to end users."""


def checked(shape: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    """`data` as `shape` describes it; unknown names are dropped, because newer clients will send some.

    Raises DRF's ValidationError, which names every field that is wrong.
    """
    form = shape(data=data)
    form.is_valid(raise_exception=True)
    return dict(form.validated_data)


def list_response(
    rows: QuerySet[M] | Sequence[M],
    limit: int,
    shape: type[serializers.Serializer[M]],
    cursor: Callable[[M], int | str],
) -> Response:
    """The first `limit` of `rows`, and whether and after what there are more (m8tes-http 1.12)."""
    found = list(rows[: limit + 1])
    shown, more = found[:limit], len(found) > limit
    rendering = shape()
    return Response(
        {
            "data": [rendering.to_representation(row) for row in shown],
            "has_more": more,
            "next_starting_after": cursor(shown[-1]) if more else None,
        }
    )


def of_scope(rows: QuerySet[M], query: dict[str, Any]) -> QuerySet[M]:
    """Those of one end user; without a `user_id` those of nobody, never everybody's (m8tes-http 3)."""
    if "user_id" in query:
        return rows.filter(end_user__user_id=query["user_id"])
    return rows.filter(end_user=None)


def check_scope(request: Request, owner: EndUser | None) -> None:
    """Raise NotFound if the address says for whom the thing has to be, and it is not (m8tes-http 3)."""
    if not request.query_params:
        return
    wanted = checked(Scope, request.query_params.dict()).get("user_id")
    if wanted is not None and (owner is None or owner.user_id != wanted):
        raise NotFound(f"There is no such thing for {wanted}.")


def run_of(actor: Actor, request: Request, run_id: int) -> Run:
    """The run that the address names, with its end user. Raises NotFound as `check_scope` does."""
    run = access.get(actor, Run.objects.select_related("end_user"), pk=run_id)
    check_scope(request, run.end_user)
    return run
