"""Two kits on one file: one drives, the other relies on it, and takes over when it is gone (design section 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from runs import local_tools
from runs.handles import MCPTestKit, ModelValidationError, SQLiteExecutionStore, StdioServer
from tests.handles.conftest import ADDRESS, agent, answer, pending_of
from tests.mcp.bindings import PATIENCE

Parcels = Callable[..., StdioServer]
Effects = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def quick_sweeps(settings: LazySettings) -> None:
    settings.M3 = dataclasses.replace(settings.M3, sweep_seconds=0.1)


@pytest.fixture
def second(kit: MCPTestKit, path: Path) -> Iterator[MCPTestKit]:
    """A kit that came after `kit`, as another process would."""
    store = SQLiteExecutionStore(path)
    with MCPTestKit(store=store, env={}) as opened:
        yield opened
    store.close()


def test_the_second_submits_and_answers_while_the_first_drives(
    kit: MCPTestKit, second: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    agent(kit, {"finish": "ok"}).submit("Go", server=parcels()).result(PATIENCE)
    handle = agent(second).submit("Book", server=parcels(), human_input="managed")
    answer(handle)
    assert handle.result(PATIENCE).output == "Pune"
    assert kit.execution(handle.execution_id).result(PATIENCE).output == "Pune"
    assert len(effects()) == 1


def test_a_server_that_the_first_does_not_offer_is_refused_and_nothing_is_stored(
    kit: MCPTestKit, second: MCPTestKit, parcels: Parcels, effects: Effects
) -> None:
    with pytest.raises(ModelValidationError, match="does not offer the server parcels"):
        agent(second).submit("Book", server=parcels(), human_input="managed")
    with pytest.raises(ModelValidationError, match="no server 'parcels'"):
        agent(second, {"finish": "ok"}).submit("Go", server="parcels")
    assert effects() == []


def test_an_answer_that_nobody_could_deliver_is_refused_and_the_round_stays(
    path: Path, parcels: Parcels, effects: Effects
) -> None:
    first_store, second_store = SQLiteExecutionStore(path), SQLiteExecutionStore(path)
    with MCPTestKit(store=first_store, env={}) as first:
        handle = agent(first).submit("Book", server=parcels(), human_input="managed")
        with MCPTestKit(store=second_store, env={}) as relying:
            mine = relying.execution(handle.execution_id)
            round_id = pending_of(mine).round_id
            first.close()
            with pytest.raises(ModelValidationError, match="nobody offers"):
                mine.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k")
            assert pending_of(mine).round_id == round_id
    refused = pytest.raises(ModelValidationError, match="nobody offers")
    with MCPTestKit(store=second_store, env={}) as without, refused:
        without.execution(handle.execution_id)
    with MCPTestKit(store=second_store, env={}, servers=[parcels()]) as having:
        again = having.execution(handle.execution_id)
        answer(again)
        assert again.result(PATIENCE).output == "Pune"
    first_store.close()
    second_store.close()
    assert len(effects()) == 1


def test_a_local_tool_that_the_first_does_not_have_is_refused(kit: MCPTestKit, second: MCPTestKit) -> None:
    @local_tools.local_tool("weigh")
    async def weigh(context: local_tools.LocalContext) -> int:
        return 3

    try:
        steps = [{"call": "local:weigh", "as": "w"}, {"finish": "{{ w.result }}"}]
        with pytest.raises(ModelValidationError, match="local tool weigh"):
            agent(second, *steps).submit("Weigh")
        assert agent(kit, *steps).submit("Weigh").result(PATIENCE).output is not None
    finally:
        local_tools.forget("weigh")


def test_the_second_takes_over_when_the_first_is_gone(path: Path, parcels: Parcels, effects: Effects) -> None:
    first_store, second_store = SQLiteExecutionStore(path), SQLiteExecutionStore(path)
    first = MCPTestKit(store=first_store, env={}, servers=[parcels()])
    try:
        agent(first, {"finish": "ok"}).submit("Go").result(PATIENCE)
        with MCPTestKit(store=second_store, env={}) as second:
            handle = agent(second).submit("Book", server=parcels(), human_input="managed")
            first.close()
            answer(handle)
            assert handle.result(PATIENCE).output == "Pune"
    finally:
        first.close()
        first_store.close()
        second_store.close()
    assert len(effects()) == 1


def test_an_answer_makes_the_one_that_relied_take_over_at_once(
    path: Path, settings: LazySettings, parcels: Parcels
) -> None:
    first_store, second_store = SQLiteExecutionStore(path), SQLiteExecutionStore(path)
    with MCPTestKit(store=first_store, env={}) as first:
        handle = agent(first).submit("Book", server=parcels(), human_input="managed")
        pending_of(handle)
        settings.M3 = dataclasses.replace(settings.M3, sweep_seconds=10 * PATIENCE)
        second = MCPTestKit(store=second_store, env={}, servers=[parcels()])
        mine = second.execution(handle.execution_id)
    answer(mine)
    assert mine.result(PATIENCE).output == "Pune"
    second.close()
    first_store.close()
    second_store.close()


def test_two_kits_on_one_store_object_share_its_work(
    store: SQLiteExecutionStore, kit: MCPTestKit, parcels: Parcels
) -> None:
    agent(kit, {"finish": "ok"}).submit("Go", server=parcels()).result(PATIENCE)
    with MCPTestKit(store=store, env={}) as other:
        handle = agent(other).submit("Book", server=parcels(), human_input="managed")
        answer(handle)
        assert handle.result(PATIENCE).output == "Pune"
