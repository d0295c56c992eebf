"""The account's settings over HTTP."""

from __future__ import annotations

from typing import ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from runs import account_settings
from runs.api.base import ActorView, checked
from runs.models import Role
from runs.serializers import SettingsChange, SettingsShape


class Settings(ActorView):
    changing: ClassVar[Role] = Role.ADMIN

    def get(self, request: Request) -> Response:
        return Response(SettingsShape(self.actor.account).data)

    def patch(self, request: Request) -> Response:
        body = checked(SettingsChange, request.data)
        return Response(SettingsShape(account_settings.change(self.actor, body)).data)
