"""Pages of policies, and the switch of a run's mode."""

from __future__ import annotations

from django.urls import path

from approvals import (
    policy_views,
    policy_views_exchange,
    policy_views_explain,
    policy_views_new,
    policy_views_one,
    renewal_views,
)

urlpatterns = [
    path("policies", policy_views.policy_list, name="policy-list"),
    path("policies/new", policy_views_new.policy_new, name="policy-new"),
    path("policies/explain", policy_views_explain.policy_explain, name="policy-explain"),
    path("policies/history", policy_views.policy_history, name="policy-history"),
    path("policies/export", policy_views_exchange.policy_export, name="policy-export"),
    path("policies/import", policy_views_exchange.policy_import, name="policy-import"),
    path("policies/<int:policy_id>", policy_views_one.policy_detail, name="policy-detail"),
    path("policies/<int:policy_id>/edit", policy_views_one.policy_edit, name="policy-edit"),
    path("policies/<int:policy_id>/suspend", policy_views_one.policy_suspend, name="policy-suspend"),
    path("policies/<int:policy_id>/changes", renewal_views.policy_renew, name="policy-renew"),
    path("policies/<int:policy_id>/revoke", policy_views.policy_revoke, name="policy-revoke"),
    path("runs/<int:run_id>/mode", policy_views.run_mode, name="run-mode"),
]
