"""`manage.py worker`: drives runs without serving pages. Any number of them, on any machine."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from approvals.gate import PolicyGate
from m3web import preparing
from runs.engines import chosen
from runs.engines.worker import Worker


class Command(BaseCommand):
    help = "Drive runs in this process, beside any number of others like it. Needs PostgreSQL."

    def add_arguments(self, parser: CommandParser) -> None:
        places = settings.M3.worker_concurrency
        parser.add_argument(
            "--concurrency", type=int, default=places, help=f"runs at work at once (default {places})"
        )
        seconds = settings.M3.stop_seconds
        parser.add_argument(
            "--stop-seconds",
            type=float,
            default=seconds,
            help=f"how long calls at work may go on after a signal to stop (default {seconds:g})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        preparing.refuse_on_sqlite("`manage.py worker`")
        places, within = options["concurrency"], options["stop_seconds"]
        if places < 1 or within < 0:
            raise CommandError("--concurrency takes a number from 1, --stop-seconds one from 0.")
        with preparing.interruptible():
            preparing.bring_up_to_date(people=False)
        worker = chosen.worker(PolicyGate(), places)
        self._say(f"Worker {worker.owner} drives up to {places} runs at once.")
        asyncio.run(work(worker, within, self._say))
        self._say(f"Worker {worker.owner} has ended. {_left(worker)}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        sys.stdout.flush()


def _left(worker: Worker) -> str:
    if worker.driver.all_given_back:
        return "Its runs are free for others."
    seconds = settings.M3.lease_seconds
    return (
        f"Not every run could be given back; the log says why. Others take them within {seconds:g} seconds."
    )


async def work(worker: Worker, within: float, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. The first one lets calls at work end `within` seconds, a second one cuts them."""
    serving = asyncio.ensure_future(worker.serve())

    def stop() -> None:
        if worker.ending:
            say(f"Worker {worker.owner} is told again: what is under way is cut.")
            serving.cancel()
        else:
            say(
                f"Worker {worker.owner} stops: it takes nothing new, and calls may go on for {within:g} seconds."
            )
        worker.end(within)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        await serving
