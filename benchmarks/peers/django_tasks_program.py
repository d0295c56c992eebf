"""The tiny run with one pause on django-tasks-db: a task that asks, and one, enqueued with the answer, that goes on.

`django_tasks_program.py URL INTERVAL` with "sqlite:///FILE" or "postgresql://..." and the seconds between two looks of
the worker, where 0 leaves the default. The worker is a process of its own, as it is in use. It knows no leases and no
journal: what a run has said are rows of two bare tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from pace import Moments, Relay, follow, latency, serve

TABLES = (
    "CREATE TABLE said (run text, line text)",
    "CREATE TABLE decision (run text PRIMARY KEY, answer text)",
)


def database(url: str) -> dict[str, Any]:
    if url.startswith("sqlite"):
        pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        options = {"transaction_mode": "IMMEDIATE", "timeout": 20, "init_command": pragmas}
        name = url.removeprefix("sqlite:///")
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": name, "OPTIONS": options}
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "HOST": parts.hostname,
        "PORT": parts.port,
        "CONN_MAX_AGE": None,
    }


def set_up(url: str) -> None:
    settings.configure(
        SECRET_KEY=uuid.uuid4().hex,
        USE_TZ=True,
        DATABASES={"default": database(url)},
        INSTALLED_APPS=["django_tasks", "django_tasks_db"],
        TASKS={"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}},
    )
    django.setup()


def main(url: str, interval: float) -> None:
    set_up(url)
    from django.core.management import call_command
    from django.db import connection, transaction
    from django_tasks_work import ask, go_on

    call_command("migrate", verbosity=0, interactive=False)
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(table)
    moments = Moments()
    command = [sys.executable, __file__, "worker", url, str(interval)]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    threading.Thread(target=follow, args=(worker.stdout, moments), daemon=True).start()

    def start() -> str:
        run = uuid.uuid4().hex
        ask.enqueue(run)
        return run

    def answer(run: str) -> tuple[float, float]:
        called = time.monotonic()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("INSERT INTO decision (run, answer) VALUES (%s, 'enterprise')", [run])
            go_on.enqueue(run)
        return called, time.monotonic()

    try:
        serve({"latency": lambda count, jitter: latency(count, start, answer, moments, jitter=jitter)})
    finally:
        worker.terminate()
        worker.wait()


def work(url: str, interval: float) -> None:
    set_up(url)
    import django_tasks_work
    from django.core.management import call_command

    django_tasks_work.tell(Relay(os.fdopen(os.dup(1), "w")))
    os.dup2(2, 1)
    options = {"interval": interval} if interval else {}
    call_command("db_worker", startup_delay=False, verbosity=0, **options)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        work(sys.argv[2], float(sys.argv[3]))
    else:
        main(sys.argv[1], float(sys.argv[2]))
