"""The addresses of the API, and what stands at every other one.

Collections end in a slash, items and actions never do, and nothing redirects: a client that follows a redirect
turns a POST into a GET, an approval into a read (m8tes-http 1.5, m8tes-http 8.1).
"""

from __future__ import annotations

from typing import Any

from django.urls import Resolver404, path, re_path, resolve
from rest_framework.request import Request
from rest_framework.views import APIView

from approvals.api import rounds
from runs.api import runs
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
    path("rounds/", rounds.RoundList.as_view(), name="api-rounds"),
    path("rounds/<str:round_id>", rounds.RoundDetail.as_view(), name="api-round"),
    path("rounds/<str:round_id>/respond", rounds.RoundRespond.as_view(), name="api-round-respond"),
    path("runs/", runs.RunList.as_view(), name="api-runs"),
    path("runs/<int:run_id>", runs.RunDetail.as_view(), name="api-run"),
    path("runs/<int:run_id>/cancel", runs.RunCancel.as_view(), name="api-run-cancel"),
    path("runs/<int:run_id>/events", runs.RunEvents.as_view(), name="api-run-events"),
    path(
        "runs/<int:run_id>/permission-mode",
        rounds.RunPermissionMode.as_view(),
        name="api-run-permission-mode",
    ),
    path("runs/<int:run_id>/reply", runs.RunReply.as_view(), name="api-run-reply"),
    re_path("", NothingHere.as_view()),
]
