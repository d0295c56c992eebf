"""Pages of policies, and the switch of a run's mode."""

from __future__ import annotations

from django.urls import path

from approvals import policy_views, renewal_views

urlpatterns = [
    path("policies", policy_views.policy_list, name="policy-list"),
    path("policies/<int:policy_id>/changes", renewal_views.policy_renew, name="policy-renew"),
    path("policies/<int:policy_id>/revoke", policy_views.policy_revoke, name="policy-revoke"),
    path("runs/<int:run_id>/mode", policy_views.run_mode, name="run-mode"),
]
