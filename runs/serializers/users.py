"""What the API takes and shows of end users (m8tes-http 2)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from runs.api.fields import Metadata, Text, Unavailable
from runs.models import EndUser

NO_LIMIT = "There are no limits for single end users here. Leave it out."


class UserShape(serializers.Serializer[EndUser]):
    """An end user; the limits are null, because there are none here."""

    id = serializers.IntegerField(source="pk")
    user_id = serializers.CharField()
    name = serializers.SerializerMethodField()
    email = serializers.SerializerMethodField()
    company = serializers.SerializerMethodField()
    metadata = serializers.DictField()
    run_limit = serializers.SerializerMethodField(method_name="get_limit")
    cost_limit_cents = serializers.SerializerMethodField(method_name="get_limit")
    rate_per_minute = serializers.SerializerMethodField(method_name="get_limit")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_name(self, user: EndUser) -> str | None:
        return user.name or None

    def get_email(self, user: EndUser) -> str | None:
        return user.email or None

    def get_company(self, user: EndUser) -> str | None:
        return user.company or None

    def get_limit(self, user: EndUser) -> int | None:
        return None


class UserChange(serializers.Serializer[Any]):
    """The body that changes a profile; null empties a part of it, metadata is replaced as a whole."""

    name = Text(max_length=200, required=False, allow_null=True)
    email = serializers.EmailField(max_length=254, required=False, allow_null=True, allow_blank=True)
    company = Text(max_length=200, required=False, allow_null=True)
    metadata = Metadata(required=False, allow_null=True)
    run_limit = Unavailable(NO_LIMIT)
    cost_limit_cents = Unavailable(NO_LIMIT)
    rate_per_minute = Unavailable(NO_LIMIT)

    def validate(self, values: dict[str, Any]) -> dict[str, Any]:
        empty: dict[str, Any] = {"metadata": {}}
        return {name: empty.get(name, "") if value is None else value for name, value in values.items()}


class NewUser(UserChange):
    """The body that adds an end user."""

    user_id = Text()
