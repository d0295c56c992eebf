"""The product's handler of HTTP under daphne, in front of views that show what it does with threads and connections.

`python -m tests.api.handler_server PORT`; two threads last, and a third request waits a moment for another.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

LASTING, PATIENCE = 2, 0.2

signals: list[tuple[str, int]] = []
"""The signals of requests so far, each with the thread that heard it."""
left: list[str] = []
"""What slow views did at their end."""
go_on = threading.Event()
"""Ends the slow views."""


def main(port: int) -> None:
    # Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
    from daphne.server import Server  # isort: skip

    import django
    from django.conf import settings

    settings.ROOT_URLCONF = "tests.api.handler_urls"
    django.setup(set_prefix=False)
    from django.core.signals import request_finished, request_started

    from m3web.http_handler import LastingThreads
    from m3web.http_threads import Threads

    request_started.connect(lambda **_: _note("started"), weak=False)
    request_finished.connect(lambda **_: _note("finished"), weak=False)
    threads = Threads(lasting=LASTING, patience=PATIENCE)
    settings.THREADS = threads
    Server(
        application=LastingThreads(threads), endpoints=[f"tcp:{port}:interface=127.0.0.1"], verbosity=0
    ).run()


def _note(signal: str) -> None:
    signals.append((signal, threading.get_ident()))


def here() -> dict[str, Any]:
    """The thread that asks, and its connection to the database, which it uses."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return {"thread": threading.get_ident(), "connection": id(connection.connection)}


async def two_lines() -> AsyncIterator[bytes]:
    """One line now, one when the slow views end."""
    yield b"one\n"
    await asyncio.to_thread(go_on.wait, 60)
    yield b"two\n"


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


if __name__ == "__main__":
    sys.modules["tests.api.handler_server"] = sys.modules["__main__"]  # the views share its lists
    main(int(sys.argv[1]))
