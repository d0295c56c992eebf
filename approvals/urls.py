"""The inbox, its cards, and the decisions that people post."""

from __future__ import annotations

from django.urls import path

from approvals import views

urlpatterns = [path("", views.inbox, name="inbox")]
