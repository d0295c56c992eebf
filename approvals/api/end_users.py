"""One end user over HTTP. Removing one takes their rules along, so the view stands on this side."""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from approvals import end_users
from runs.api.users import UserDetail as Profile


class UserDetail(Profile):
    def delete(self, request: Request, user_id: str) -> Response:
        """Revoke the rules made for them and forget them; runs that have ended stay (m8tes-http 3)."""
        self.user_of(request, user_id)
        end_users.remove(self.actor, user_id)
        return Response(status=204)
