"""`manage.py web`: pages, API and sockets without a worker. Any number of them, on any machine, beside workers."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from m3web import preparing, serving


class Command(BaseCommand):
    help = "Serve pages, API and sockets from this process, and leave the runs to `manage.py worker`. Needs PostgreSQL."

    def add_arguments(self, parser: CommandParser) -> None:
        serving.add_address(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        preparing.refuse_on_sqlite("`manage.py web`")
        host, port = serving.address(options, instead="--port {}")
        with preparing.interruptible():
            preparing.bring_up_to_date(people=True)
        serving.serve(host, port, up=lambda: self._greet(host, port))

    def _greet(self, host: str, port: int) -> None:
        self.stdout.write(f"M3 Web serves http://{serving.shown(host)}:{port}/ and drives no runs.")
        sys.stdout.flush()
