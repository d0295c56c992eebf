"""The inbox and its cards: parse, call the service, render."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET


@login_required
@require_GET
def inbox(request: HttpRequest) -> HttpResponse:
    """Everything that waits for a person in the account."""
    return render(request, "approvals/inbox.html", {"section": "inbox"})
