"""The inbox, its cards, and the decisions that people post."""

from __future__ import annotations

from django.urls import path

from approvals import several_views, views

urlpatterns = [
    path("", views.inbox, name="inbox"),
    path("rounds/", views.waiting, name="waiting"),
    path("rounds/several", several_views.several, name="several"),
    path("rounds/<str:round_id>/", views.round_page, name="round"),
    path("rounds/<str:round_id>/card", views.card, name="card"),
    path("rounds/<str:round_id>/row", views.row, name="row"),
    path("rounds/<str:round_id>/ending", views.ending, name="ending"),
    path("rounds/<str:round_id>/decide", views.decide, name="decide"),
    path("rounds/<str:round_id>/extend", views.extend, name="extend"),
]
