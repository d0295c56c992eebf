"""Django's admin: for looking, and for the few rows that no state rule guards.

What has a life of its own (runs, rounds, history) is read-only here, because a save from this page would pass by
leases, state machines and the hash chain. What can be changed is told to the ledger. Secrets are never shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from runs import audit
from runs.models import (
    Account,
    Agent,
    ApiKey,
    EndUser,
    Event,
    IdempotencyKey,
    Ledger,
    LedgerEntry,
    LeftSession,
    Membership,
    Round,
    Run,
    SecretProof,
    SeenAddress,
    SeenDefinition,
    Server,
    Step,
    Task,
    Tool,
    ToolCall,
    ToolWord,
    Turn,
    User,
    WebhookDelivery,
    WebhookEndpoint,
    WorkerHost,
)

if TYPE_CHECKING:  # Django's admin classes are generic in their stubs only
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline


class ReadOnlyAdmin(ModelAdmin):
    """Nothing here can be added, changed or deleted."""

    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class NotedAdmin(ModelAdmin):
    """What is changed here is told to the ledger of its account, like what is changed anywhere else."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._note(request, "admin.added", obj, message)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self._note(request, "admin.changed", obj, message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            self._note(request, "admin.deleted", obj, [])
        return super().log_deletions(request, queryset)

    def _note(self, request: HttpRequest, action: str, obj: Any, message: Any) -> None:
        account = obj if isinstance(obj, Account) else (obj.server if isinstance(obj, Tool) else obj).account
        user = request.user if isinstance(request.user, User) else None
        facts = {"name": str(obj), "changes": message}
        audit.note(account, user, action, f"{self.opts.model_name} {obj.pk}", facts)


admin.site.register(User, UserAdmin)


class MembershipInline(TabularInline):
    model = Membership
    extra = 0
    raw_id_fields = ("user",)


@admin.register(Account)
class AccountAdmin(NotedAdmin):
    list_display = ("name", "slug", "elicitation_timeout", "created_at")
    inlines = (MembershipInline,)


@admin.register(EndUser)
class EndUserAdmin(NotedAdmin):
    list_display = ("user_id", "account", "name", "company")
    search_fields = ("user_id", "name")
    readonly_fields = ("account", "user_id")


@admin.register(Server)
class ServerAdmin(ReadOnlyAdmin):
    """Servers are changed on their own page, which checks addresses and pins identities."""

    list_display = ("name", "account", "transport", "address", "trusted", "listed_at")
    exclude = ("headers", "variables")


@admin.register(Tool)
class ToolAdmin(NotedAdmin):
    """An admin's words about a tool; everything else about it is the server's."""

    list_display = ("name", "server", "risk", "idempotent", "replay_allowed", "present")
    list_filter = ("risk", "present")
    search_fields = ("name",)
    fields = (
        "server",
        "name",
        "description",
        "risk",
        "idempotent",
        "replay_allowed",
        "present",
        "digest",
        "changed_at",
    )
    readonly_fields = ("server", "name", "description", "present", "digest", "changed_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


@admin.register(Agent)
class AgentAdmin(ReadOnlyAdmin):
    """Agents are changed on their own page, which checks the playbook."""

    list_display = ("name", "account", "harness", "default_mode", "enabled")


@admin.register(Task)
class TaskAdmin(NotedAdmin):
    list_display = ("__str__", "account", "agent", "default_mode")
    raw_id_fields = ("agent", "end_user")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("id", "account", "agent", "status", "outcome", "mode", "created_at")
    list_filter = ("status", "outcome", "mode")
    list_select_related = ("account", "agent")


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("id", "run", "index", "status", "outcome", "created_at")
    list_filter = ("status", "outcome")


@admin.register(Step)
class StepAdmin(ReadOnlyAdmin):
    list_display = ("run_id", "seq", "kind", "path", "created_at", "finished_at")
    list_filter = ("kind",)
    ordering = ("-id",)


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnlyAdmin):
    list_display = ("step", "full_name", "phase", "attempts", "sent_at")
    list_filter = ("phase",)
    list_select_related = ("step",)
    exclude = ("wire",)


@admin.register(Round)
class RoundAdmin(ReadOnlyAdmin):
    list_display = ("id", "run", "kind", "status", "outcome", "decided_by", "created_at")
    list_filter = ("kind", "status", "outcome")
    list_select_related = ("run", "decided_by")
    exclude = ("lease_token", "native_resume_token", "request_state")


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("run_id", "seq", "type", "actor_name", "at")
    list_filter = ("type",)
    ordering = ("-id",)


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = ("account", "seq", "action", "subject", "actor_name", "at")
    list_filter = ("account", "action")
    list_select_related = ("account",)
    ordering = ("-id",)


@admin.register(Ledger)
class LedgerAdmin(ReadOnlyAdmin):
    list_display = ("account", "seq", "head")
    list_select_related = ("account",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    list_display = ("name", "account", "role", "public_id", "last_used_at", "revoked_at")
    list_select_related = ("account",)
    exclude = ("secret_digest",)


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    list_display = ("account", "key", "created_at")
    list_select_related = ("account",)


@admin.register(SeenDefinition)
class SeenDefinitionAdmin(ReadOnlyAdmin):
    list_display = ("account", "name", "digest")
    list_select_related = ("account",)
    search_fields = ("name", "digest")


@admin.register(SeenAddress)
class SeenAddressAdmin(ReadOnlyAdmin):
    list_display = ("account", "identity")
    list_select_related = ("account",)


@admin.register(ToolWord)
class ToolWordAdmin(ReadOnlyAdmin):
    list_display = ("__str__",)


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnlyAdmin):
    list_display = ("url", "account", "active")
    list_select_related = ("account",)
    exclude = ("secret",)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("event_type", "endpoint", "status", "attempts", "created_at")
    list_filter = ("status",)
    list_select_related = ("endpoint",)


@admin.register(WorkerHost)
class WorkerHostAdmin(ReadOnlyAdmin):
    list_display = ("id", "seen_at")


@admin.register(LeftSession)
class LeftSessionAdmin(ReadOnlyAdmin):
    list_display = ("host", "keeper", "operation_id", "left_at")
    list_filter = ("host",)


@admin.register(SecretProof)
class SecretProofAdmin(ReadOnlyAdmin):
    list_display = ("id",)
    exclude = ("proof",)
