"""`manage.py up`: web, sockets and worker in one process on one loop. The embedded default."""

from __future__ import annotations

# Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
import daphne.server  # noqa: F401  # isort: skip

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

from daphne.server import Server, twisted_loop
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from twisted.internet import defer
from twisted.internet import reactor as twisted_reactor

from approvals.gate import PolicyGate
from m3web import demo
from m3web.config import LOOPBACK_HOSTS
from m3web.web_server import bound_bodies, wait_for_readers
from runs.engines.in_process import AlreadyRunningError, InProcess

reactor: Any = twisted_reactor
"""Twisted chooses its reactor at import time, which no type can follow."""


PREPARING = 0x6D33_7765_62
"""The number under which processes queue in PostgreSQL to bring it up to date; closing the connection leaves."""


class Command(BaseCommand):
    help = "Start M3 Web: pages, sockets and worker, in this one process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"].strip("[]"), options["port"]
        if settings.M3.demo and host not in LOOPBACK_HOSTS:
            raise CommandError("Demo mode listens on loopback only. Unset M3_DEMO, or use --host 127.0.0.1.")
        check_port(host, port)
        engine = InProcess(PolicyGate())
        try:
            with interruptible():
                prepare(engine)
        except KeyboardInterrupt:
            raise CommandError("Stopped before it was up.", returncode=130) from None
        self._serve(engine, host, port)

    def _serve(self, engine: InProcess, host: str, port: int) -> None:
        from m3web.asgi import application

        worker: asyncio.Task[None] | None = None

        def started() -> None:
            nonlocal worker
            bound_bodies(server)
            wait_for_readers(server)
            worker = twisted_loop.create_task(engine.serve())
            worker.add_done_callback(self._worker_ended)
            self._greet(host, port)

        def stop() -> defer.Deferred[None]:
            return defer.Deferred.fromFuture(asyncio.ensure_future(_ended(worker), loop=twisted_loop))

        reactor.addSystemEventTrigger("before", "shutdown", stop)
        server = Server(
            application=application,
            endpoints=[endpoint(host, port)],
            ready_callable=started,
            server_name="m3web",
            verbosity=0,
        )
        server.run()
        end_tasks(twisted_loop)
        if worker is not None and worker.done() and not worker.cancelled():
            raise CommandError(f"The worker ended: {worker.exception()!r}")

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        """A worker that ends by itself takes the process along: pages without a worker would be a lie."""
        if not worker.cancelled():
            reactor.callFromThread(reactor.stop)

    def _greet(self, host: str, port: int) -> None:
        self.stdout.write(f"\nM3 Web is up: http://{_shown(host)}:{port}/")
        if settings.M3.demo:
            self.stdout.write("Demo logins of this installation (kept in a file that only you can read):")
            for name, role, password in demo.logins():
                self.stdout.write(f"  {name:<8} {role:<9} {password}")
            self.stdout.write(f"API key, for http://{_shown(host)}:{port}/api/v2:\n  {demo.api_key()}")
        self.stdout.write("Stop with Ctrl-C.\n")
        sys.stdout.flush()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends what is inside, also where its exception is swallowed on the way (by a finaliser, say).

    Afterwards the handler from before is back: Twisted puts its own in place of Python's only.
    """
    asked = False

    def note(*_: object) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
        if asked:
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)


def prepare(engine: InProcess) -> None:
    """Own the database, bring it up to date, and open or close the demo. Raises CommandError if it is owned."""
    try:
        engine.lock()
    except AlreadyRunningError as error:
        raise CommandError(str(error)) from error
    with one_at_a_time():
        call_command("migrate", verbosity=0, interactive=False)
        if settings.M3.demo:
            demo.seed()
        else:
            demo.close_logins()
    connection.close()  # this thread serves from now on; the worker's and the pages' threads have their own


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Processes that start at once on one PostgreSQL prepare it one after the other, because `migrate` may not run
    twice at a time. On SQLite the lock of the file has refused the second one already."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARING])
        yield
        cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARING])


def check_port(host: str, port: int) -> None:
    """Say in time that a port is taken; once the reactor runs, only a log line would. Raises CommandError."""
    if not 0 < port < 65_536:
        raise CommandError(f"{port} is no port. Choose one from 1 to 65535, for example --port 8000.")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Cannot listen on {_shown(host)}:{port} ({error.strerror}). "
                f"Choose another port: make up PORT={port + 1 if port < 65_535 else 8000}"
            ) from error


def endpoint(host: str, port: int) -> str:
    """Where to listen, in Twisted's words; in them a colon separates arguments."""
    escaped = host.replace(":", r"\:")
    return f"tcp:{port}:interface={escaped}"


def _shown(host: str) -> str:
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


async def _ended(worker: asyncio.Task[None] | None) -> None:
    if worker is not None:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait_for(asyncio.shield(worker), 10)
