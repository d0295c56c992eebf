"""The two servers that an installation may use instead of what is built in: PostgreSQL and Redis.

Read by the settings, so Django is not there yet.
"""

from __future__ import annotations

import hashlib
import socket
from importlib.util import find_spec
from typing import Any

from runs.sqlite import connection_options

EXTRA = "requirements/scale.txt"
"""What has to be installed for either; in the words of the checks."""

ANSWERS_WITHIN = 5
"""Seconds in which a server must accept a connection."""

TRIED_FOR = 3
"""Seconds for which the pool tries to connect by itself, with growing pauses. After that whoever needs a connection
makes it try at once: after a long outage nobody is refused because the pool still pauses."""

MEMORY_LAYER = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


def missing_for_postgres() -> bool:
    """Whether a package is missing without which Django cannot even load its PostgreSQL part."""
    return not (find_spec("psycopg") and find_spec("psycopg_pool"))


def missing_for_redis() -> bool:
    """Whether the channel layer for Redis is not installed."""
    return not (find_spec("channels_redis") and find_spec("redis"))


def missing_for_procrastinate() -> bool:
    """Whether the engine beyond one machine is not installed."""
    return not find_spec("procrastinate")


def apps(engine: str) -> list[str]:
    """The Django apps that an engine brings: procrastinate's tables are made by `migrate`."""
    return ["procrastinate.contrib.django"] if engine == "procrastinate" else []


def database(
    parsed: dict[str, Any], *, connections: int, abandoned_after: float, silence: int
) -> dict[str, Any]:
    """Django's settings for the database of a parsed `DATABASE_URL`, whose own options win.

    `connections` is how many one process opens at most. `abandoned_after` is after how many seconds PostgreSQL
    ends a transaction in which nothing happens: a worker that hangs in one would otherwise keep its rows locked
    for ever, past its lease. After `silence` seconds without an answer either end takes the connection for broken:
    the other machine, or the line to it, may be gone without a word.
    """
    if parsed["ENGINE"].endswith("sqlite3"):
        # Opening a file costs more than most requests do with it, and the threads that serve outlive a request.
        return {**parsed, "OPTIONS": connection_options(), "CONN_MAX_AGE": None}
    of_session = {
        "idle_in_transaction_session_timeout": int(abandoned_after * 1000),
        "tcp_keepalives_idle": silence // 3,
        "tcp_keepalives_interval": silence // 3,
        "tcp_keepalives_count": 2,
        "tcp_user_timeout": silence * 1000,
    }
    options = {
        "pool": {
            "min_size": 1,
            "max_size": connections,
            "timeout": 2 * ANSWERS_WITHIN,
            "reconnect_timeout": TRIED_FOR,
        },
        "connect_timeout": ANSWERS_WITHIN,
        "keepalives_idle": silence // 3,
        "keepalives_interval": silence // 3,
        "keepalives_count": 2,
        "tcp_user_timeout": silence * 1000,
        "prepare_threshold": 2,  # for the statements of `runs.prepared`; others are not prepared
        "options": " ".join(f"-c {name}={value}" for name, value in of_session.items()),
    }
    return {
        **parsed,
        "OPTIONS": {**options, **parsed.get("OPTIONS", {})},
        "CONN_MAX_AGE": 0,  # a request gives its connection back to the pool
        "CONN_HEALTH_CHECKS": True,
    }


def channel_layers(redis_url: str, secret: str, *, silence: int) -> dict[str, dict[str, Any]]:
    """Django's settings for hints: through Redis if there is a URL, else inside this process.

    Every process of an installation has the same `secret`, so its digest keeps the hints of two installations on
    one Redis apart; Redis' own database numbers do not, because publishing knows none. `silence` as for `database`.
    """
    if not redis_url:
        return MEMORY_LAYER
    host = {
        "address": redis_url,
        "socket_connect_timeout": ANSWERS_WITHIN,
        "socket_timeout": ANSWERS_WITHIN,
        "socket_keepalive": True,
        "socket_keepalive_options": _alive_within(silence),
        "health_check_interval": silence // 3,
    }
    prefix = f"m3-{hashlib.sha256(secret.encode()).hexdigest()[:12]}"
    layer = {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"}
    return {"default": {**layer, "CONFIG": {"hosts": [host], "prefix": prefix}}}


def _alive_within(silence: int) -> dict[int, int]:
    """How the system finds out that the other end of a connection is gone, as far as it can be told."""
    wanted = {
        "TCP_KEEPIDLE": silence // 3,
        "TCP_KEEPINTVL": silence // 3,
        "TCP_KEEPCNT": 2,
        "TCP_USER_TIMEOUT": silence * 1000,
    }
    return {getattr(socket, name): value for name, value in wanted.items() if hasattr(socket, name)}
