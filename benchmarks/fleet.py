"""The product beyond one machine: `manage.py web` and `manage.py worker`, any number of them, on a PostgreSQL and a
Redis that are started for it and kept as durable as they come (`fsync` on)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2

from benchmarks.installation import Api, Installation
from benchmarks.processes import PATIENCE, free_port, listening, running
from tests import requirements, stores


@contextmanager
def fleet(folder: Path) -> Iterator[Fleet]:
    """Prepared data on servers of its own, which end on leaving."""
    with (
        stores.postgres(requirements.postgres_binaries()) as postgres,
        stores.redis(requirements.redis_binary()) as redis,
    ):
        yield Fleet(folder, DATABASE_URL=postgres, REDIS_URL=redis)


class Fleet(Installation):
    """Prepared data on PostgreSQL and Redis, whose processes come and go one by one."""

    @contextmanager
    def web(self) -> Iterator[Api]:
        """One more `manage.py web`; gives a person who is signed in there."""
        port = free_port()
        args = ["manage.py", "web", "--port", str(port)]
        with (
            listening(args, port, self.data_dir / f"web-{port}", self.env) as process,
            httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client,
        ):
            yield Api(self, client, pid=process.pid)

    @contextmanager
    def worker(self) -> Iterator[int]:
        """One more `manage.py worker`; gives its process id."""
        log = self.data_dir / f"worker-{free_port()}"
        with running(
            ["manage.py", "worker"], lambda: "drives up to" in log.read_text(), log, self.env
        ) as process:
            yield process.pid

    @contextmanager
    def up(self) -> Iterator[Api]:
        """A worker, and a web process in front of it."""
        with ExitStack() as stack:
            self.pid = stack.enter_context(self.worker())
            yield stack.enter_context(self.web())
