"""`manage.py worker` and `manage.py web` say where they do not belong."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from m3web import preparing
from tests.mcp.bindings import ROOT

ON_SQLITE = (
    "On SQLite one process does everything: start `manage.py up`, or name a PostgreSQL in DATABASE_URL."
)


def run(tmp_path: Path, *command: str, **env: str) -> tuple[int, str]:
    ours = ("M3_", "DATABASE_", "REDIS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env={**inherited, "M3_DATA_DIR": str(tmp_path), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["worker", "web"])
def test_on_sqlite_they_refuse_and_say_what_to_start_instead(tmp_path: Path, command: str) -> None:
    code, said = run(tmp_path, command)

    assert code == 1
    assert said == (
        f"CommandError: `manage.py {command}` is for installations on PostgreSQL, where several processes share the "
        f"work. {ON_SQLITE}\n"
    )


def test_web_keeps_demo_mode_on_loopback(tmp_path: Path, postgres_database: str) -> None:
    code, said = run(tmp_path, "web", "--host", "0.0.0.0", M3_DEMO="1", DATABASE_URL=postgres_database)

    assert (code, said) == (
        1,
        "CommandError: Demo mode listens on loopback only. Unset M3_DEMO, or use --host 127.0.0.1.\n",
    )


def test_a_number_of_places_that_is_none_is_refused(tmp_path: Path, postgres_database: str) -> None:
    code, said = run(tmp_path, "worker", "--concurrency", "0", DATABASE_URL=postgres_database)

    assert (code, said) == (
        1,
        "CommandError: --concurrency takes a number from 1, --stop-seconds one from 0.\n",
    )


def test_web_names_a_free_port_as_its_own_option(tmp_path: Path, postgres_database: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = run(tmp_path, "web", "--port", str(port), DATABASE_URL=postgres_database)

    assert code == 1
    assert re.search(rf":{port} \(Address already in use\)\. Choose another port: --port \d+\n$", said)


def test_a_signal_while_a_process_prepares_is_one_clear_line() -> None:
    import signal

    with pytest.raises(CommandError, match="Stopped before it was up"), preparing.interruptible():
        signal.raise_signal(signal.SIGTERM)
