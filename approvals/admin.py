"""Policies in Django's admin: to look at. They are granted and revoked where their rules are checked."""

from __future__ import annotations

from django.contrib import admin

from approvals.models import Policy
from runs.admin import ReadOnlyAdmin


@admin.register(Policy)
class PolicyAdmin(ReadOnlyAdmin):
    list_display = ("target", "effect", "scope", "end_user", "source", "hits", "last_used_at", "expires_at")
    list_filter = ("effect", "scope", "source")
    list_select_related = ("end_user",)
