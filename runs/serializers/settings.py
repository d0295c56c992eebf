"""What the API takes and shows of an account's settings (m8tes-http 3)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from runs.api.fields import Flag, Unavailable
from runs.models import Account
from runs.serializers.users import NO_LIMIT

_NO_MESSAGES = "Nothing is sent this way here. Set it to false, or leave it out."


class SettingsShape(serializers.Serializer[Account]):
    """The settings, with those that clients know and that are fixed here."""

    require_end_user_id = serializers.BooleanField()
    approval_email_enabled = serializers.BooleanField()
    approval_slack_enabled = serializers.SerializerMethodField(method_name="get_off")
    result_email_enabled = serializers.SerializerMethodField(method_name="get_off")
    result_slack_enabled = serializers.SerializerMethodField(method_name="get_off")
    retention_mode = serializers.SerializerMethodField()
    per_end_user_run_limit = serializers.SerializerMethodField(method_name="get_limit")
    per_end_user_cost_limit_cents = serializers.SerializerMethodField(method_name="get_limit")
    per_end_user_rate_per_minute = serializers.SerializerMethodField(method_name="get_limit")

    def get_off(self, account: Account) -> bool:
        return False

    def get_retention_mode(self, account: Account) -> str:
        return "standard"

    def get_limit(self, account: Account) -> int | None:
        return None


class SettingsChange(serializers.Serializer[Any]):
    """The body that changes settings; what is left out stays."""

    require_end_user_id = Flag(required=False)
    approval_email_enabled = Flag(required=False)
    approval_slack_enabled = Unavailable(_NO_MESSAGES, off=False)
    result_email_enabled = Unavailable(_NO_MESSAGES, off=False)
    result_slack_enabled = Unavailable(_NO_MESSAGES, off=False)
    retention_mode = Unavailable("Runs are kept as they are here. Leave it out.", off="standard")
    per_end_user_run_limit = Unavailable(NO_LIMIT)
    per_end_user_cost_limit_cents = Unavailable(NO_LIMIT)
    per_end_user_rate_per_minute = Unavailable(NO_LIMIT)
