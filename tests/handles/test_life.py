"""Kits and stores open, close and refuse what comes after; nobody is left waiting."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runs.handles import (
    AsyncMCPTestKit,
    MCPTestKit,
    ModelValidationError,
    OperationTimeout,
    SessionBusyError,
    SessionClosedError,
    SQLiteExecutionStore,
)
from runs.handles.stores import PrivateStore
from tests.handles.conftest import agent
from tests.mcp.bindings import PATIENCE


def test_a_closed_kit_refuses_work_and_its_handles_do_too(store: SQLiteExecutionStore) -> None:
    with MCPTestKit(store=store) as kit:
        handle = agent(kit, {"finish": "ok"}).submit("Go")
        handle.result(PATIENCE)
    for work in (handle.snapshot, handle.result, lambda: agent(kit, {"finish": "ok"}).submit("Go")):
        with pytest.raises(SessionClosedError):
            work()
    with MCPTestKit(store=store) as again:
        assert again.execution(handle.execution_id).result().output == "ok"


def test_whoever_waits_when_the_kit_closes_is_told(store: SQLiteExecutionStore) -> None:
    kit = MCPTestKit(store=store)
    handle = agent(kit, {"sleep": 600}).submit("Sleep")
    told: list[BaseException] = []
    waits = threading.Event()

    def wait() -> None:
        waits.set()
        try:
            handle.result()
        except BaseException as error:
            told.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert waits.wait(PATIENCE)
    kit.close()
    waiter.join(PATIENCE)
    assert [type(error) for error in told] == [SessionClosedError]


def test_a_store_closes_after_its_kits(path: Path) -> None:
    store = SQLiteExecutionStore(path)
    kit = MCPTestKit(store=store)
    with pytest.raises(SessionBusyError):
        store.close()
    kit.close()
    store.close()
    store.close()
    with pytest.raises(SessionClosedError):
        MCPTestKit(store=store)


def test_the_file_of_a_kit_without_a_store_is_gone_when_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[PrivateStore] = []
    attach = PrivateStore.attach

    def noted(store: PrivateStore) -> None:
        made.append(store)
        attach(store)

    monkeypatch.setattr(PrivateStore, "attach", noted)
    with MCPTestKit() as kit:
        agent(kit, {"finish": "ok"}).submit("Go").result(PATIENCE)
        assert made[0].path.exists()
    assert not made[0].path.parent.exists()


def test_what_is_no_store_or_no_server_is_refused_at_once(path: Path) -> None:
    with pytest.raises(ModelValidationError, match="store is"):
        MCPTestKit(store=str(path))  # type: ignore[arg-type]
    with pytest.raises(ModelValidationError, match="servers is"):
        MCPTestKit(servers=[{"name": "parcels"}])  # type: ignore[list-item]


def test_a_store_in_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    store = SQLiteExecutionStore(tmp_path / "missing" / "executions.sqlite")
    with pytest.raises(ModelValidationError, match="missing"):
        MCPTestKit(store=store).__enter__()
    store.close()


def test_rounds_of_a_reopened_file_are_read_without_starting_anything(store: SQLiteExecutionStore) -> None:
    """C37, C47."""
    with MCPTestKit(store=store) as kit:
        handle = agent(kit, {"sleep": 600}).submit("Sleep", human_input="managed")
        handle.cancel()
    reader = SQLiteExecutionStore(store.path)
    assert reader.managed_input_store is reader.managed_input_store
    assert reader.managed_input_store.list_rounds(handle.execution_id) == ()
    reader.close()


async def test_a_cancelled_wait_cancels_no_execution(path: Path) -> None:
    store = SQLiteExecutionStore(path)
    async with AsyncMCPTestKit(store=store) as kit:
        handle = await agent(kit, {"sleep": 1.0}, {"finish": "ok"}).submit("Sleep")  # type: ignore[arg-type]
        waiting = asyncio.create_task(handle.result())
        await handle.snapshot()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(OperationTimeout):
            await handle.result(0.01)
        assert (await handle.result(PATIENCE)).output == "ok"
    store.close()


async def test_a_waiting_coroutine_is_told_when_the_kit_closes(path: Path) -> None:
    store = SQLiteExecutionStore(path)
    kit = AsyncMCPTestKit(store=store)
    handle = await agent(kit, {"sleep": 600}).submit("Sleep")  # type: ignore[arg-type]
    waiting = asyncio.create_task(handle.result())
    await handle.snapshot()
    await kit.close()
    with pytest.raises(SessionClosedError):
        await asyncio.wait_for(waiting, PATIENCE)
    store.close()
