"""`manage.py up`: web, sockets and worker in one process on one loop. The embedded default."""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.gate import PolicyGate
from m3web import demo, preparing, serving
from runs.engines import chosen
from runs.engines.in_process import AlreadyRunningError, InProcess
from runs.engines.worker import Worker


class Command(BaseCommand):
    help = "Start M3 Web: pages, sockets and worker, in this one process."

    def add_arguments(self, parser: CommandParser) -> None:
        serving.add_address(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = serving.address(options, instead="make up PORT={}")
        worker = chosen.worker(PolicyGate())
        with preparing.interruptible():
            own(worker)
            preparing.bring_up_to_date(people=True)
        serving.serve(host, port, worker=worker.serve, up=lambda: self._greet(host, port))

    def _greet(self, host: str, port: int) -> None:
        self.stdout.write(f"\nM3 Web is up: http://{serving.shown(host)}:{port}/")
        if settings.M3.demo:
            self.stdout.write("Demo logins of this installation (kept in a file that only you can read):")
            for name, role, password in demo.logins():
                self.stdout.write(f"  {name:<8} {role:<9} {password}")
            self.stdout.write(f"API key, for http://{serving.shown(host)}:{port}/api/v2:\n  {demo.api_key()}")
        self.stdout.write("Stop with Ctrl-C.\n")
        sys.stdout.flush()


def own(worker: Worker) -> None:
    """On SQLite, keep every other process off the file. Raises CommandError if it is owned."""
    if isinstance(worker, InProcess):
        try:
            worker.lock()
        except AlreadyRunningError as error:
            raise CommandError(f"{str(error).removesuffix('.')}, or set M3_DATA_DIR.") from error
