"""What the frame around every page shows: where we are, who we are, how much waits."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from runs.access import Actor, actor_for
from runs.errors import NotAllowed
from runs.models import Round


def shell(request: HttpRequest) -> dict[str, Any]:
    """Adds `actor` (or None), `pending_count` and `demo` to every template.

    A template calls what it can call, so the pauses are counted where the number is shown and not for each fragment.
    """
    actor = _actor(request)
    return {"actor": actor, "pending_count": cache(partial(_pending, actor)), "demo": settings.M3.demo}


def _actor(request: HttpRequest) -> Actor | None:
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return None
    try:
        return actor_for(user)
    except NotAllowed:
        return None


def _pending(actor: Actor | None) -> int:
    return Round.objects.filter(account=actor.account).pending().count() if actor else 0
