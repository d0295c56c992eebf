"""For whatever watches a process from outside: does it answer, and can it do its work?"""

from __future__ import annotations

from typing import Any, Final

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

ANSWERS_WITHIN: Final = 2
"""Seconds that the database server may take; the connections of the pages wait longer."""


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process serves. Of what it needs this says nothing: a restart would not bring that back."""
    return JsonResponse({"status": "ok"})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Whether pages and decisions work now; 503 while the database is away. Without it nothing is shown or decided."""
    try:
        _ask_database()
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "database": "does not answer"}, status=503)
    return JsonResponse({"status": "ok", "database": "ok"})


def _ask_database() -> None:
    """Raises DatabaseError. PostgreSQL is asked on a connection of its own: the pool would wait for its return."""
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return
    import psycopg  # not installed everywhere; without it the settings refuse the URL of a PostgreSQL

    parameters: dict[str, Any] = connection.get_connection_params()
    with connection.wrap_database_errors:
        psycopg.connect(**{**parameters, "connect_timeout": ANSWERS_WITHIN}).close()
