"""System checks that explain a bad setting before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core import checks
from django.db import connection

from m3web import stores


@checks.register()
def environment_is_usable(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Every environment variable that could not be parsed is an error of its own."""
    return [
        checks.Error(
            problem.message,
            hint=f"Correct or unset {problem.variable}; the README lists all settings.",
            id="m3web.E001",
        )
        for problem in settings.M3.problems
    ]


@checks.register()
def channel_layer_is_there(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """`get_channel_layer()` returns None silently on a configuration mistake; then no hint would ever arrive."""
    if get_channel_layer() is None:
        return [checks.Error("No channel layer is configured, so pages would never update.", id="m3web.E002")]
    return []


@checks.register()
def database_server_answers(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """PostgreSQL takes our connection and can store every text; better said now than by the first page."""
    if connection.vendor != "postgresql":
        return []
    import psycopg  # not installed everywhere; without it the settings refuse the URL

    parameters = {**connection.get_connection_params(), "connect_timeout": stores.ANSWERS_WITHIN}
    try:
        with psycopg.connect(**parameters) as opened:
            encoding = opened.info.parameter_status("server_encoding")
    except psycopg.Error as error:
        return [
            checks.Error(
                f"The database of DATABASE_URL cannot be used: {str(error).strip()}",
                hint="Start PostgreSQL, or correct host, database, user or password in DATABASE_URL.",
                id="m3web.E003",
            )
        ]
    if encoding != "UTF8":
        return [
            checks.Error(
                f"The database of DATABASE_URL stores texts as {encoding}, in which most cannot be written.",
                hint="Create it with ENCODING 'UTF8'.",
                id="m3web.E004",
            )
        ]
    return []


@checks.register()
def redis_answers(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Without Redis the product works and pages must be reloaded by hand: no reason to refuse the start."""
    if not settings.M3.redis_url:
        return []
    import redis  # not installed everywhere; without it the settings refuse the URL

    wait = stores.ANSWERS_WITHIN
    try:
        with redis.Redis.from_url(
            settings.M3.redis_url, socket_connect_timeout=wait, socket_timeout=wait
        ) as client:
            client.ping()
    except (redis.RedisError, OSError) as error:
        return [
            checks.Warning(
                f"The Redis of REDIS_URL does not answer ({error}); until it does, pages do not update by themselves.",
                hint="Start Redis, or correct host, user or password in REDIS_URL.",
                id="m3web.W002",
            )
        ]
    return []


@checks.register(deploy=True)
def demo_is_for_loopback(app_configs: Any, **kwargs: Any) -> Sequence[checks.CheckMessage]:
    """Demo mode creates logins and permits stdio commands from the page; it must not face a network."""
    if settings.M3.demo:
        return [
            checks.Warning("Demo mode is on.", hint="Unset M3_DEMO for a real installation.", id="m3web.W001")
        ]
    return []
