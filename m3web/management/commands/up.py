"""`manage.py up`: web, sockets and worker in one process on one loop. The embedded default."""

from __future__ import annotations

# Daphne installs the asyncio reactor; it must be imported before anything else of Twisted.
import daphne.server  # noqa: F401  # isort: skip

import asyncio
import contextlib
import sys
from typing import Any

from daphne.server import Server, twisted_loop
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from twisted.internet import defer
from twisted.internet import reactor as twisted_reactor

from approvals.gate import PolicyGate
from m3web import demo
from m3web.config import LOOPBACK_HOSTS
from runs.engines.in_process import AlreadyRunningError, InProcess

reactor: Any = twisted_reactor
"""Twisted chooses its reactor at import time, which no type can follow."""


class Command(BaseCommand):
    help = "Start M3 Web: pages, sockets and worker, in this one process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        if settings.M3.demo and host not in LOOPBACK_HOSTS:
            raise CommandError("Demo mode listens on loopback only. Unset M3_DEMO, or use --host 127.0.0.1.")
        engine = InProcess(PolicyGate())
        try:
            engine.lock()
        except AlreadyRunningError as error:
            raise CommandError(str(error)) from error
        call_command("migrate", verbosity=0, interactive=False)
        if settings.M3.demo:
            demo.seed()
        self._serve(engine, host, port)

    def _serve(self, engine: InProcess, host: str, port: int) -> None:
        from m3web.asgi import application

        worker: asyncio.Task[None] | None = None

        def started() -> None:
            nonlocal worker
            worker = twisted_loop.create_task(engine.serve())
            worker.add_done_callback(self._worker_ended)
            self._greet(host, port)

        def stop() -> defer.Deferred[None]:
            return defer.Deferred.fromFuture(asyncio.ensure_future(_ended(worker), loop=twisted_loop))

        reactor.addSystemEventTrigger("before", "shutdown", stop)
        Server(
            application=application,
            endpoints=[f"tcp:{port}:interface={host.strip('[]')}"],
            ready_callable=started,
            server_name="m3web",
            verbosity=0,
        ).run()

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        """A worker that ends by itself takes the process along: pages without a worker would be a lie."""
        if worker.cancelled():
            return
        self.stderr.write(f"The worker ended: {worker.exception()!r}")
        reactor.callFromThread(reactor.stop)

    def _greet(self, host: str, port: int) -> None:
        self.stdout.write(f"\nM3 Web is up: http://{host}:{port}/")
        if settings.M3.demo:
            self.stdout.write("Demo logins of this installation (kept in a file that only you can read):")
            for name, role, password in demo.logins():
                self.stdout.write(f"  {name:<8} {role:<9} {password}")
        self.stdout.write("Stop with Ctrl-C.\n")
        sys.stdout.flush()


async def _ended(worker: asyncio.Task[None] | None) -> None:
    if worker is not None:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await asyncio.wait_for(asyncio.shield(worker), 10)
