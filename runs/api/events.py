"""What happened in an account, over HTTP. One run's own events, in their order, stand in `runs.api.runs`."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from runs import access
from runs.api.base import ActorView, checked, list_response
from runs.models import Event
from runs.serializers import AccountEvent, EventQuery

_FILTERS = {"run": "run", "agent_id": "run__agent", "user_id": "run__end_user__user_id", "type": "type"}
"""What the list can be narrowed to, and the column that it is about."""


class EventList(ActorView):
    def get(self, request: Request) -> Response:
        """Newest first, whoever the runs are for: this is the account's history (design section 8)."""
        query = checked(EventQuery, request.query_params.dict())
        found = access.visible(self.actor, Event.objects.select_related("run__end_user")).order_by("-pk")
        found = found.filter(**{_FILTERS[name]: query[name] for name in _FILTERS.keys() & query.keys()})
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        return list_response(found, query["limit"], AccountEvent, lambda event: event.pk)
