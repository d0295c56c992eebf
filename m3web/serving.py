"""The web server of a process: what `manage.py up` and `manage.py web` have in common."""

from __future__ import annotations

# Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
import daphne.server  # noqa: F401  # isort: skip

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Coroutine
from typing import Any, Final

from daphne.server import Server, twisted_loop
from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from twisted.internet import defer
from twisted.internet import reactor as twisted_reactor

from m3web.config import LOOPBACK_HOSTS
from m3web.preparing import STOPPED_EARLY
from m3web.web_server import bound_bodies, wait_for_readers
from runs import push

reactor: Any = twisted_reactor
"""Twisted chooses its reactor at import time, which no type can follow."""

STOPS_WITHIN: Final = 10.0
"""Seconds that the work beside the pages may take to end."""


def add_address(parser: CommandParser) -> None:
    """The options that say where to listen."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")


def address(options: dict[str, Any], *, instead: str) -> tuple[str, int]:
    """Where to listen; `instead` is how whoever started this chooses another port, with {} for it.

    Raises CommandError if that may not be, or cannot.
    """
    host, port = options["host"].strip("[]"), options["port"]
    if settings.M3.demo and host not in LOOPBACK_HOSTS:
        raise CommandError("Demo mode listens on loopback only. Unset M3_DEMO, or use --host 127.0.0.1.")
    check_port(host, port, instead)
    return host, port


def serve(
    host: str,
    port: int,
    *,
    up: Callable[[], None],
    worker: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve pages, API and sockets until a signal stops it, or until a `worker` beside them ends.

    `up` is called once it listens. Raises CommandError if the worker ended by itself: pages without it would be a lie.
    """
    from m3web.asgi import application

    beside: asyncio.Task[None] | None = None
    relays: list[asyncio.Task[None]] = []

    def started() -> None:
        nonlocal beside
        bound_bodies(server)
        wait_for_readers(server)
        push.connect(twisted_loop)
        if push.bridged():
            relays.append(twisted_loop.create_task(push.relay()))
        elif push.carried():
            relays.append(twisted_loop.create_task(push.watch()))
        if worker is not None:
            beside = twisted_loop.create_task(worker())
            beside.add_done_callback(_stop_with)
        up()

    def stop() -> defer.Deferred[None]:
        return defer.Deferred.fromFuture(asyncio.ensure_future(_ended(beside), loop=twisted_loop))

    reactor.addSystemEventTrigger("before", "shutdown", stop)
    server = Server(
        application=application,
        endpoints=[endpoint(host, port)],
        ready_callable=started,
        server_name="m3web",
        verbosity=0,
    )
    try:
        server.run()
    except KeyboardInterrupt:  # in the moment before the reactor takes signals itself
        end_tasks(twisted_loop)
        raise CommandError(STOPPED_EARLY, returncode=130) from None
    end_tasks(twisted_loop)
    if beside is not None and beside.done() and not beside.cancelled():
        raise CommandError(f"The worker ended: {beside.exception()!r}")


def _stop_with(beside: asyncio.Task[None]) -> None:
    if not beside.cancelled():
        reactor.callFromThread(reactor.stop)


def check_port(host: str, port: int, instead: str) -> None:
    """Say in time that a port is taken, and which is not; once the reactor runs, only a log line would.

    `instead` as for `address`. Raises CommandError.
    """
    if not 0 < port < 65_536:
        raise CommandError(f"{port} is no port. Choose one from 1 to 65535, for example --port 8000.")
    try:
        _bound_once(host, port)
    except OSError as error:
        hint = "Choose another address or port."
        if error.errno == errno.EADDRINUSE:
            hint = f"Choose another port: {instead.format(_free_port(host, port))}"
        raise CommandError(f"Cannot listen on {shown(host)}:{port} ({error.strerror}). {hint}") from error


def _bound_once(host: str, port: int) -> int:
    """The port, or the one that the system chose for 0. Raises OSError if it cannot be had."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])


def _free_port(host: str, taken: int) -> int:
    """One of the next ports, else any that is free."""
    for port in range(taken + 1, min(taken + 20, 65_536)):
        with contextlib.suppress(OSError):
            return _bound_once(host, port)
    return _bound_once(host, 0)


def endpoint(host: str, port: int) -> str:
    """Where to listen, in Twisted's words; in them a colon separates arguments."""
    escaped = host.replace(":", r"\:")
    return f"tcp:{port}:interface={escaped}"


def shown(host: str) -> str:
    """The host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """End what still waits on the stopped loop, such as a socket's inner tasks. Left to the interpreter's own end,
    they are collected after their loop is gone, which can crash it."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())


async def _ended(beside: asyncio.Task[None] | None) -> None:
    if beside is not None:
        beside.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait_for(asyncio.shield(beside), STOPS_WITHIN)
