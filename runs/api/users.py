"""End users over HTTP: who the embedding application's customers are. Removing one stands in `approvals.api`."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from runs import access, end_users
from runs.api.base import ActorView, Paging, checked, list_response
from runs.errors import NotFound
from runs.models import EndUser
from runs.serializers import NewUser, UserChange, UserShape


class UserList(ActorView):
    def get(self, request: Request) -> Response:
        """Newest first."""
        query = checked(Paging, request.query_params.dict())
        found = end_users.present(self.actor).order_by("-pk")
        if "starting_after" in query:
            found = found.filter(pk__lt=query["starting_after"])
        return list_response(found, query["limit"], UserShape, lambda user: user.pk)

    def post(self, request: Request) -> Response:
        body = checked(NewUser, request.data)
        return Response(UserShape(end_users.create(self.actor, body.pop("user_id"), body)).data, status=201)


class UserDetail(ActorView):
    """The id is the rest of the address, with the slashes in it: servers decode `%2F` before anybody sees it."""

    def get(self, request: Request, user_id: str) -> Response:
        return Response(UserShape(self.user_of(request, user_id)).data)

    def patch(self, request: Request, user_id: str) -> Response:
        """Change parts of the profile; metadata is replaced as a whole (m8tes-http 3)."""
        self.user_of(request, user_id)
        body = checked(UserChange, request.data)
        return Response(UserShape(end_users.change(self.actor, user_id, body)).data)

    def user_of(self, request: Request, user_id: str) -> EndUser:
        """Raises NotFound; an id may end in a slash, but one too many is likelier (m8tes-http 1.5)."""
        try:
            return access.get(self.actor, end_users.present(self.actor), user_id=user_id)
        except NotFound as error:
            if not user_id.endswith("/"):
                raise
            meant = request.path_info.removesuffix("/")
            raise NotFound(f"{error} Collections end in a slash, items do not: try {meant}") from error
