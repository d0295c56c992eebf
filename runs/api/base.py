"""What every view of the API has: an actor whose role permits the method, checked input, one shape of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from runs import keys
from runs.access import Actor, actor_for
from runs.models import ApiKey, Role

M = TypeVar("M", bound=Model)

MAX_ID = 2**63 - 1
"""What the database can compare an id with."""


class ActorView(APIView):
    """A view for a signed-in member of an account; whoever only looks on may read and nothing else."""

    actor: Actor

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raises NotAuthenticated (401) for nobody, NotAllowed (403) for a role that may not."""
        super().initial(request, *args, **kwargs)
        self.actor = (
            keys.actor_of(request.auth) if isinstance(request.auth, ApiKey) else actor_for(request.user)
        )
        if request.method not in SAFE_METHODS:
            self.actor.require(Role.OPERATOR)


class Limited(serializers.Serializer[Any]):
    """The query of any list: how many rows."""

    limit = serializers.IntegerField(min_value=1, max_value=100, default=20)


class Paging(Limited):
    """The query of a list whose rows have numbers: after which one."""

    starting_after = serializers.IntegerField(min_value=0, max_value=MAX_ID, required=False)


def checked(shape: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
    """`data` as `shape` describes it; unknown names are dropped, because newer clients will send some.

    Raises DRF's ValidationError, which names every field that is wrong.
    """
    form = shape(data=data)
    form.is_valid(raise_exception=True)
    return dict(form.validated_data)


def list_response(
    rows: QuerySet[M],
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
