"""What some tests need besides Python, and what happens where it is missing.

One rule: a missing thing skips the tests that need it, the summary says so in one line per thing, and under
`M3_REQUIRE_ALL=1` (the CI script) it fails them instead. Also a pytest plugin, loaded by `tests/conftest.py`.

PostgreSQL and Redis. A test takes the fixture `postgres_database` for the URL of an empty database of its own (for
processes: `DATABASE_URL`; `new_postgres_database()` in a fixture of wider scope), and calls `redis_url()` for a Redis.
Both come from one server per test process, which is started on first use and stopped at the end, or from
`M3_TEST_POSTGRES_URL` (a database whose user may create others) and `M3_TEST_REDIS_URL`. Whether the *suite itself*
runs on PostgreSQL is decided before it starts, by `DATABASE_URL` and `REDIS_URL`; `python -m tests.on_postgres` sets
them, and `connection.vendor` tells which it is.
"""

from __future__ import annotations

import os
import platform
import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

NODE_MODULES = Path(__file__).parent / "node" / "node_modules"
PEERS = Path(__file__).parent / "peers"

_MARK = "Not run here, missing: "
_NPM = "node 22 and the servers from npm (run `npm ci --ignore-scripts` in tests/node)"
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first has the same engine and no window of its own, which saves a third of the processor time."""

_POSTGRES = "PostgreSQL 15 or newer (Debian: `apt-get install postgresql`)"
_REDIS = "a Redis (Debian: `apt-get install redis-server`)"

_NETWORKS = "network namespaces (Linux, as root; Debian: `apt-get install iproute2`)"

servers = ExitStack()
"""Servers that this process started; closed when pytest ends."""
_urls: dict[str, str] = {}


def require(present: bool, what: str) -> None:
    """Go on if `present`; otherwise skip the test, or fail it under `M3_REQUIRE_ALL=1`.

    `what` names the missing thing and how to get it, in the same words everywhere: the summary counts by it.
    """
    if present:
        return
    if os.environ.get("M3_REQUIRE_ALL") == "1":
        pytest.fail(f"{_MARK}{what}", pytrace=False)
    pytest.skip(f"{_MARK}{what}")


def node_path() -> str:
    """The pinned node 22; the system's may be too old for the conformance scenarios (node 20 dies at import)."""
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    node = NODE_MODULES / f"node-linux-{architecture}" / "bin" / "node"
    require(node.is_file(), _NPM)
    return str(node)


def npm_script(package: str) -> str:
    """The `dist/index.js` of an installed npm package."""
    script = NODE_MODULES / package / "dist" / "index.js"
    require(script.is_file(), _NPM)
    return str(script)


def find_chromium() -> str | None:
    """A Chromium that is here."""
    return next((path for name in _BROWSERS if (path := shutil.which(name))), None)


def chromium_path() -> str:
    """A Chromium that the browser tests may drive."""
    found = find_chromium()
    require(found is not None, "a chromium (Debian: `apt-get install chromium-headless-shell`)")
    return str(found)


def peer_python(name: str) -> str:
    """The Python of a peer: software that we are compared with or talk to, in an environment of its own.

    `name` is that of its lock, `tests/peers/NAME.txt`.
    """
    environment = PEERS / f".venv-{name}"
    require(
        (environment / ".installed").is_file(),
        f"the peer {name} (run `make tests/peers/.venv-{name}/.installed`)",
    )
    return str(environment / "bin" / "python")


def repeats() -> int:
    """How often to repeat what chance has a part in: races, generated sequences. `M3_TEST_REPEATS`, in CI 200."""
    return int(os.environ.get("M3_TEST_REPEATS", "20"))


def postgres_binaries() -> Path:
    """The folder with PostgreSQL's programs."""
    from tests import stores  # only here: it needs a driver that not every test needs

    binaries = stores.postgres_binaries()
    require(binaries is not None, _POSTGRES)
    assert binaries is not None
    return binaries


def redis_binary() -> str:
    """The program `redis-server`."""
    binary = shutil.which("redis-server")
    require(binary is not None, _REDIS)
    return str(binary)


def networks() -> None:
    """Go on if this process may lay out networks of its own."""
    from tests.fleet.network import available

    require(available(), _NETWORKS)


def postgres_url() -> str:
    """A database on a PostgreSQL server whose user may create others; never one to put tables into."""
    from tests import stores

    url = os.environ.get("M3_TEST_POSTGRES_URL") or _urls.get("postgres")
    if url is None:
        url = _urls["postgres"] = servers.enter_context(stores.postgres(postgres_binaries()))
    return url


def redis_url() -> str:
    """A Redis that tests share; what they publish is told apart by the installation's secret key."""
    from tests import stores

    url = os.environ.get("M3_TEST_REDIS_URL") or _urls.get("redis")
    if url is None:
        url = _urls["redis"] = servers.enter_context(stores.redis(redis_binary()))
    return url


@contextmanager
def new_postgres_database() -> Iterator[str]:
    """The URL of an empty database, which is dropped at the end with whoever is still connected."""
    import psycopg

    server, name = postgres_url(), f"m3_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    yield urlsplit(server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def own_database() -> Iterator[dict[str, str]]:
    """The environment of a product that a test starts as a process: a database of its own, of the suite's kind.

    On SQLite that is the file in its data folder, of which nothing need be said.
    """
    from django.db import connection

    if connection.vendor != "postgresql":
        yield {}
        return
    with new_postgres_database() as url:
        yield {"DATABASE_URL": url}


@pytest.fixture
def postgres_database() -> Iterator[str]:
    """An empty database for one test."""
    with new_postgres_database() as url:
        yield url


def pytest_unconfigure() -> None:
    """Stop the servers that tests of this process started."""
    servers.close()
    _urls.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One loud line per missing thing. Read from the reports, so that it also works with parallel workers."""
    missing: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, marked, what = reason.partition(_MARK)
        if marked:
            missing[what] = missing.get(what, 0) + 1
    for what, count in sorted(missing.items()):
        tests = "1 test was" if count == 1 else f"{count} tests were"
        terminalreporter.write_line(f"{tests} NOT RUN, missing: {what}", yellow=True, bold=True)
