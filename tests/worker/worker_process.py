"""A real worker as a process of its own on the test's database, for tests that kill it.

`WorkerProcess.start()` from a test that has committed its rows (`transactional_db`); the process runs
`python -m tests.worker.worker_process` with the test's settings and engine, owns a database file as `manage.py up`
does, finds work by its sweep, and offers the local tools of `worker_tools`. `kill()` is SIGKILL, `stop()` is SIGTERM.
Where it is held before it is killed is said by its environment (`held_moments`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from tests.mcp.bindings import PATIENCE, ROOT

READY = "ready"


@dataclass
class WorkerProcess:
    """One worker; start another one after its end."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls, **env: str) -> WorkerProcess:
        """Start a worker with the settings of this test, `env` on top, and wait until it works."""
        ours = ("M3_", "DATABASE_", "REDIS_")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.worker.worker_process"],
            cwd=ROOT,
            env={**inherited, **environment(), **env},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip() == READY, f"the worker did not start (it said {line!r})"
        return cls(process)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as a service manager does."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()


def environment() -> dict[str, str]:
    """The test's settings as a worker reads them."""
    m3 = settings.M3
    return {
        "DATABASE_URL": database_url(),
        "M3_ENGINE": m3.engine,
        "M3_DATA_DIR": str(m3.data_dir),
        "M3_SECRET_KEY": settings.SECRET_KEY,
        "M3_ENCRYPTION_SALT": m3.encryption_salt,
        "M3_STDIO_SERVERS": json.dumps(m3.stdio_servers),
        "M3_ALLOW_PRIVATE_URLS": str(m3.allow_private_urls),
        "M3_LEASE_SECONDS": str(m3.lease_seconds),
        "M3_SWEEP_SECONDS": str(m3.sweep_seconds),
        "M3_CALL_TIMEOUT_SECONDS": str(m3.call_timeout_seconds),
        "M3_KEEPER_ORPHAN_SECONDS": str(m3.keeper_orphan_seconds),
        "M3_HOST_GONE_SECONDS": str(m3.host_gone_seconds),
        "M3_LOG_LEVEL": "WARNING",
    }


def database_url() -> str:
    """The test's database, not the one of the settings."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{database['NAME']}"
    who = f"{quote(str(database['USER']))}:{quote(str(database['PASSWORD']))}"
    where = f"{quote(str(database['HOST']), safe='')}:{database['PORT'] or 5432}"
    return f"postgres://{who}@{where}/{quote(str(database['NAME']))}"


async def _work() -> None:
    from approvals.gate import PolicyGate
    from runs.engines import chosen
    from runs.engines.in_process import InProcess
    from tests.worker import held_moments, worker_tools

    worker_tools.register()
    held_moments.install()
    engine = chosen.worker(PolicyGate())
    if isinstance(engine, InProcess):
        engine.lock()
    working = asyncio.ensure_future(engine.serve())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    sys.stdout.write(READY + "\n")
    sys.stdout.flush()
    with contextlib.suppress(asyncio.CancelledError):
        await working


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    django.setup()
    asyncio.run(_work())
