"""Kits on a file of their own, with a small stdio server; the test is the program."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from runs import database
from runs.handles import (
    ElicitationResponse,
    ExecutionHandle,
    ExecutionStatus,
    MCPTestKit,
    PendingElicitationRound,
    SQLiteExecutionStore,
    StdioServer,
)
from tests.mcp.bindings import PATIENCE, ROOT, effects_in

ADDRESS = ElicitationResponse(action="accept", content={"street": "1 Main Street", "city": "Pune"})
BOOK = [
    {"call": "parcels:book", "as": "b"},
    {"finish": "{{ b.result.given.shipping_address.city || b.error }}"},
]


@pytest.fixture(autouse=True)
def folder_of_its_own(settings: LazySettings, tmp_path: Path) -> None:
    """Where sessions of older servers are kept while nobody drives them."""
    settings.M3 = dataclasses.replace(settings.M3, data_dir=tmp_path, keeper_orphan_seconds=30.0)


@pytest.fixture(autouse=True)
def files_may_be_opened(django_db_blocker: Any) -> Iterator[None]:
    """Kits work on files of their own, never on the database that tests otherwise share."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> Path:
    """A file with its tables; making them is most of what a new store costs."""
    path = tmp_path_factory.mktemp("stores") / "empty.sqlite"
    with django_db_blocker.unblock():
        database.prepare_file(path)
    return path


@pytest.fixture
def path(empty_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_file, tmp_path / "executions.sqlite"))


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteExecutionStore]:
    opened = SQLiteExecutionStore(path)
    yield opened
    opened.close()


@pytest.fixture
def kit(store: SQLiteExecutionStore) -> Iterator[MCPTestKit]:
    with MCPTestKit(store=store, env={}) as opened:
        yield opened


@pytest.fixture
def parcels(tmp_path: Path) -> Callable[..., StdioServer]:
    """The parcel service of this test, in the present generation of the protocol or, as "legacy", the older one."""

    def server(generation: str = "modern", **fields: Any) -> StdioServer:
        script = str(ROOT / "tests" / "servers" / "parcels.py")
        env = {"M3_EFFECTS": str(tmp_path / "effects")}
        return StdioServer("parcels", sys.executable, [script, generation], env, **fields)

    return server


@pytest.fixture
def effects(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """What the parcel service has done, as it counted it itself."""
    return lambda: effects_in(tmp_path / "effects")


def agent(kit: MCPTestKit, *steps: dict[str, Any], **fields: Any) -> Any:
    return kit.agents([{"definition": {"steps": list(steps or BOOK)}, **fields}])[0]


def pending_of(handle: ExecutionHandle) -> PendingElicitationRound:
    """The pending elicitation, once there is one."""
    until = time.monotonic() + PATIENCE
    while (found := handle.pending_elicitation()) is None:
        state = handle.snapshot()
        assert state.lifecycle is not ExecutionStatus.FINISHED, state
        assert time.monotonic() < until, state
        time.sleep(0.02)
    return found


def answer(handle: ExecutionHandle, **responses: ElicitationResponse) -> str:
    """Answer what is pending; returns the id of the round."""
    round_id = pending_of(handle).round_id
    handle.respond_elicitation(
        round_id, responses or {"shipping_address": ADDRESS}, idempotency_key=f"test-{round_id}"
    )
    return round_id


@contextmanager
def inside(path: Path) -> Iterator[None]:
    """Rows of a store's file, for what a program has no way to say."""
    with database.file_connection(path):
        yield
