"""Standing allow rules as m8tes clients know them: allow a tool beforehand, list what is allowed, revoke it."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from approvals.preapproving import preapprove, standing, withdraw
from approvals.serializers import NewPolicy, PolicyShape
from runs.api.base import ActorView, ListQuery, Scope, checked, list_response, of_scope


class PolicyList(ActorView):
    def get(self, request: Request) -> Response:
        """Newest first; without a `user_id` only those for runs that carry none."""
        query = checked(ListQuery, request.query_params.dict())
        rules = of_scope(standing(self.actor), query).select_related("end_user").order_by("-pk")
        if (after := query.get("starting_after")) is not None:
            rules = rules.filter(pk__lt=after)
        return list_response(rules, query["limit"], PolicyShape, lambda policy: policy.pk)

    def post(self, request: Request) -> Response:
        """Allow a server or a tool; the same again is the same rule."""
        body = checked(NewPolicy, request.data)
        policy = preapprove(self.actor, body["tool"], user_id=body["user_id"])
        return Response(PolicyShape(policy).data, status=201)


class PolicyDetail(ActorView):
    def delete(self, request: Request, policy_id: int) -> Response:
        """Revoke a rule of the scope that the query names (m8tes-http 3)."""
        query = checked(Scope, request.query_params.dict())
        withdraw(self.actor, policy_id, user_id=query.get("user_id"))
        return Response(status=204)
