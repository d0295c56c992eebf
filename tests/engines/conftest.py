"""Databases that are ready for use, made once, and installations on copies of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests import stores
from tests.engines.fleet import Fleet
from tests.engines.own_postgres import OwnPostgres
from tests.mcp.bindings import ROOT, STATE_KEY
from tests.mcp.conftest import serve_http  # noqa: F401  (a fixture)
from tests.requirements import _POSTGRES, new_postgres_database, postgres_url, require

Fleets = Callable[..., Fleet]
"""(engine, store) and settings -> an installation; `store` is "sqlite" or "postgres"."""


@pytest.fixture(scope="session")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the shared server has done, as it counted it itself."""
    return tmp_path_factory.mktemp("effects") / "effects"


@pytest.fixture(scope="session")
def playground(serve_http: Callable[..., str], effects: Path) -> str:  # noqa: F811
    return serve_http("tests.servers.playground", M3_STATE_KEY=STATE_KEY, M3_EFFECTS=str(effects))


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, playground: str, effects: Path) -> Iterator[Fleets]:
    """Make installations that nothing has happened in yet."""
    with ExitStack() as stack:
        originals: dict[str, str] = {}

        def original(store: str) -> str:
            """A database with tables and people, which nobody is connected to."""
            if store not in originals:
                folder = tmp_path_factory.mktemp(f"original-{store}")
                url = (
                    f"sqlite:///{folder}/db"
                    if store == "sqlite"
                    else stack.enter_context(new_postgres_database())
                )
                engine = "in_process" if store == "sqlite" else "procrastinate"
                fleet = Fleet(folder, engine, url, playground, effects)
                subprocess.run(
                    [sys.executable, "manage.py", "migrate", "-v", "0"],
                    cwd=ROOT,
                    env=fleet.environment(M3_LEASE_SECONDS="300"),
                    check=True,
                )
                fleet.office().ask("people", playground=playground)
                fleet.stop()
                originals[store] = url
            return originals[store]

        def make(engine: str, store: str, **settings: str) -> Fleet:
            folder = tmp_path_factory.mktemp("fleet")
            source = original(store)
            if store == "sqlite":
                shutil.copy(source.removeprefix("sqlite:///"), folder / "db")
                url = f"sqlite:///{folder}/db"
            else:
                url = stack.enter_context(copied(source))
            fleet = Fleet(folder, engine, url, playground, effects, settings)
            stack.callback(fleet.stop)
            return fleet

        yield make


@pytest.fixture
def server() -> Iterator[OwnPostgres]:
    """A PostgreSQL of the test's own, to be stopped and started again."""
    binaries = stores.postgres_binaries()
    require(binaries is not None, _POSTGRES)
    assert binaries is not None
    with tempfile.TemporaryDirectory(prefix="m3-restart-") as folder:
        Path(folder).chmod(0o755)
        own = OwnPostgres(binaries, Path(folder))
        try:
            own.start()
            yield own
        finally:
            own.stop()


@contextmanager
def copied(source: str) -> Iterator[str]:
    """A copy of a PostgreSQL database on the same server."""
    original = urlsplit(source).path[1:]
    name = f"{original}_{len(original)}"
    with psycopg.connect(postgres_url(), autocommit=True) as admin:
        (number,) = admin.execute("select count(*) from pg_database").fetchone() or (0,)
        name = f"{original}_{number}"
        admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{original}"')
    yield urlsplit(source)._replace(path=f"/{name}").geturl()
    with psycopg.connect(postgres_url(), autocommit=True) as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
