"""Webhooks over HTTP: where an account is told of its runs, and what was sent there (m8tes-http 7)."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from runs import access
from runs.api.base import ActorView, ListQuery, Scope, checked, list_response, of_scope
from runs.models import Role, WebhookDelivery, WebhookEndpoint
from runs.serializers import DeliveryShape, NewWebhook, NewWebhookShape, WebhookChange, WebhookShape
from runs.webhooks import deliveries, endpoints
from runs.webhooks.endpoints import Change


class _WebhookView(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def find(self, request: Request, webhook_id: int) -> WebhookEndpoint:
        """The endpoint, in the scope that the address names; the scopes never mix. Raises NotFound."""
        scope = checked(Scope, request.query_params.dict())
        return access.get(self.actor, of_scope(_rows(), scope), pk=webhook_id)


class WebhookList(_WebhookView):
    def get(self, request: Request) -> Response:
        """Newest first; without a `user_id` those of the account itself."""
        query = checked(ListQuery, request.query_params.dict())
        found = access.visible(self.actor, of_scope(_rows(), query)).order_by("-pk")
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        return list_response(found, query["limit"], WebhookShape, lambda row: row.pk)

    def post(self, request: Request) -> Response:
        """Add an endpoint; the answer has its secret in full, this once."""
        body = checked(NewWebhook, request.data)
        made = endpoints.create(self.actor, body["url"], body["events"], user_id=body["user_id"])
        return Response(NewWebhookShape(made).data, status=201)


class WebhookDetail(_WebhookView):
    def get(self, request: Request, webhook_id: int) -> Response:
        return Response(WebhookShape(self.find(request, webhook_id)).data)

    def patch(self, request: Request, webhook_id: int) -> Response:
        """Change an endpoint; with a new secret the answer has it in full, this once."""
        self.find(request, webhook_id)
        body = checked(WebhookChange, request.data)
        changed = endpoints.change(self.actor, webhook_id, Change(**body))
        shape = NewWebhookShape if body["rotate_secret"] else WebhookShape
        return Response(shape(changed).data)

    def delete(self, request: Request, webhook_id: int) -> Response:
        self.find(request, webhook_id)
        endpoints.remove(self.actor, webhook_id)
        return Response(status=204)


class WebhookDeliveries(_WebhookView):
    def get(self, request: Request, webhook_id: int) -> Response:
        """What was sent to an endpoint, newest first."""
        row = self.find(request, webhook_id)
        query = checked(ListQuery, request.query_params.dict())
        found = WebhookDelivery.objects.filter(endpoint=row).order_by("-pk").defer("body")
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        return list_response(found, query["limit"], DeliveryShape, lambda delivery: delivery.pk)


class WebhookRedeliver(_WebhookView):
    def post(self, request: Request, webhook_id: int, delivery_id: int) -> Response:
        """Send a delivery once more, with the same id and body, as one of its own."""
        self.find(request, webhook_id)
        return Response(
            DeliveryShape(deliveries.redeliver(self.actor, webhook_id, delivery_id)).data, status=201
        )


def _rows() -> QuerySet[WebhookEndpoint]:
    return WebhookEndpoint.objects.select_related("end_user")
