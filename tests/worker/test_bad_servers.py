"""What goes wrong on the other side: the run says what happened, and nothing else is disturbed."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from runs import db
from runs.models import Round, Run, ToolCall
from tests.mcp.bindings import ROOT
from tests.worker.conftest import Desk, results


@pytest.fixture
def raw_server(settings: LazySettings, tmp_path: Path) -> Callable[..., None]:
    """Allow a stdio server that is nothing but lines of JSON and lists one tool."""

    def allow(name: str, generation: str, tool: str) -> None:
        listed = tmp_path / f"{name}.json"
        listed.write_text(json.dumps([{"name": tool, "inputSchema": {"type": "object"}}]))
        script = str(ROOT / "tests" / "servers" / "raw.py")
        entry = {"command": sys.executable, "args": [script, generation, f"tools={listed}"]}
        settings.M3 = dataclasses.replace(
            settings.M3, stdio_servers={**settings.M3.stdio_servers, name: entry}
        )

    return allow


async def outcome_of(desk_: Desk, step: dict[str, Any], server: str) -> dict[str, Any]:
    run = await desk_.start([{**step, "as": "r"}, {"finish": "{{ r.status }}"}], server=server)
    done = await desk_.finished(run)
    assert done.outcome == "completed", "the agent learns of it and may go on"
    return (await db.read(results, run))["steps.0"]


async def test_an_unreachable_server_fails_the_call_and_not_the_worker(
    desk_: Desk, settings: LazySettings
) -> None:
    entries = {**settings.M3.stdio_servers, "gone": {"command": "/nonexistent/server"}}
    settings.M3 = dataclasses.replace(settings.M3, stdio_servers=entries)
    failed = await outcome_of(desk_, {"call": "gone:anything", "args": {}}, "gone")
    assert failed["status"] == "failed"
    assert failed["error"]
    again = await outcome_of(desk_, {"call": "playground:echo", "args": {"value": "x"}}, "playground")
    assert again["status"] == "done"


async def test_a_server_that_dies_during_a_call_leaves_an_unknown_outcome(
    desk_: Desk, raw_server: Callable[..., None]
) -> None:
    raw_server("mortal", "legacy", "dies")
    run = await desk_.start([{"call": "mortal:dies", "args": {}}], server="mortal")
    (round_,) = await desk_.pending(run, "outcome")
    assert round_.context["reason"]
    await desk_.accept(round_, decision="stop")
    assert (await desk_.finished(run)).error_code == "stopped"


async def test_a_tool_that_hangs_is_given_up_after_its_time_and_a_person_is_asked(
    desk_: Desk, settings: LazySettings
) -> None:
    settings.M3 = dataclasses.replace(settings.M3, call_timeout_seconds=1.5)
    run = await desk_.start([{"call": "playground:slow", "args": {"tag": "hangs"}}], server="playground")
    (round_,) = await desk_.pending(run, "outcome")
    assert "second" in round_.context["reason"]


async def test_a_result_of_five_megabytes_is_kept_whole_and_the_journal_stays_small(desk_: Desk) -> None:
    run = await desk_.start(
        [{"call": "playground:large", "args": {"megabytes": 5}, "as": "r"}], server="playground"
    )
    await desk_.finished(run)
    call = await db.read(ToolCall.objects.get, step__run=run)
    assert len(str(call.raw_result)) > 5_000_000
    value = (await db.read(results, run))["steps.0"]["result"]
    assert value["truncated"] is True
    assert len(str(value)) < 200_000


async def test_a_tool_that_reports_an_error_is_a_failed_step_with_its_words(desk_: Desk) -> None:
    failed = await outcome_of(desk_, {"call": "playground:fails", "args": {}}, "playground")
    assert failed["status"] == "failed"
    assert failed["error"]


async def test_an_unknown_tool_or_server_is_denied_with_a_sentence(desk_: Desk) -> None:
    denied = await outcome_of(desk_, {"call": "playground:no_such_tool", "args": {}}, "playground")
    assert denied["status"] == "denied"
    assert "no_such_tool" in denied["error"]
    elsewhere = await outcome_of(desk_, {"call": "nowhere:tool", "args": {}}, "playground")
    assert elsewhere["status"] == "denied"


async def test_an_unusable_schema_can_be_declined_and_a_server_that_never_stops_asking_meets_its_limit(
    desk_: Desk, raw_server: Callable[..., None]
) -> None:
    """Its form nests and carries markup; it asks the same again whatever it is told (C42)."""
    raw_server("odd", "modern", "nested")
    run = await desk_.start([{"call": "odd:nested", "args": {}}], server="odd")
    for number in range(10):
        (round_,) = await desk_.pending(run)
        assert round_.round_index == number
        (key,) = round_.requests
        await desk_.answer(round_, {key: {"action": "decline"}})
    done = await desk_.finished(run)
    assert (done.outcome, done.error_code) == ("failed", "elicitation_round_limit")
    assert await db.read(Round.objects.filter(run=run).count) == 10


async def test_a_playbook_that_breaks_at_run_time_says_where(desk_: Desk) -> None:
    run = await desk_.start([{"say": "{{ sum(message) }}"}], server="")
    done: Run = await desk_.finished(run)
    assert done.outcome == "failed"
    assert "steps[0]" in (done.error or "")
