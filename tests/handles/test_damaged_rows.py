"""A damaged row is refused to whoever reads or answers it, and its execution can still be ended (C46)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.handles import ManagedInputValidationError, MCPTestKit, StdioServer
from runs.models import Round
from tests.handles.conftest import ADDRESS, BOOK, agent, inside, pending_of
from tests.mcp.bindings import PATIENCE


@pytest.mark.parametrize("damage", [[], {"shipping_address": {"mode": "form"}}])
def test_nobody_reads_or_answers_it_and_cancelling_ends_it(
    kit: MCPTestKit, parcels: Callable[..., StdioServer], path: Path, damage: Any
) -> None:
    handle = agent(kit, *BOOK).submit("Go", server=parcels(), human_input="managed")
    round_id = pending_of(handle).round_id
    with inside(path):
        Round.objects.filter(pk=round_id).update(requests=damage)

    refused: list[Callable[[], Any]] = [
        handle.pending_elicitation,
        handle.pending_rounds,
        lambda: handle.respond_elicitation(round_id, {"shipping_address": ADDRESS}, idempotency_key="k"),
    ]
    for call in refused:
        with pytest.raises(ManagedInputValidationError, match="damaged"):
            call()
    handle.cancel()
    assert handle.result(PATIENCE).outcome == "cancelled"
