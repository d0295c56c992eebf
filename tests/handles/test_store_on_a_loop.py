"""The managed input store waits for its database; on an event loop it says where to use it instead (C47)."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from runs.errors import ManagedInputStateError
from runs.handles import SQLiteExecutionStore
from runs.managed_input import DjangoManagedInputStore

EXECUTION = str(uuid.uuid4())


async def test_it_is_refused_on_a_loop_and_works_beside_it(store: SQLiteExecutionStore) -> None:
    with pytest.raises(ManagedInputStateError, match=r"asyncio\.to_thread"):
        _ = store.managed_input_store
    assert await asyncio.to_thread(lambda: store.managed_input_store.list_rounds(EXECUTION)) == ()
    with pytest.raises(ManagedInputStateError, match=r"asyncio\.to_thread"):
        store.managed_input_store.list_rounds(EXECUTION)


async def test_the_store_of_the_installation_is_no_exception() -> None:
    with pytest.raises(ManagedInputStateError, match=r"asyncio\.to_thread"):
        DjangoManagedInputStore().list_rounds(EXECUTION)
