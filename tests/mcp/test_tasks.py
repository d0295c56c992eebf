"""The Tasks extension (SEP-2663): a call is answered with a task, which is asked about, answered and given up by id."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import (
    Completed,
    Failed,
    HttpBinding,
    InputRequired,
    TaskStarted,
    Unanswered,
    Working,
    cancel_task,
)
from tests.mcp.bindings import LEGACY, PATIENCE, effects_in, module, raw
from tests.mcp.looker import NAME, TASK, Looker, question, telling
from tests.mcp.recorder import Recorder
from tests.servers.raw_http import MODERN, Reply, error, raw_http, result


@pytest.fixture
def looker() -> Looker:
    return Looker(saved=MODERN)


# --- how a task begins ------------------------------------------------------------------------------------


async def test_the_extension_is_declared_over_http_and_an_id_names_the_route(looker: Looker) -> None:
    with telling({"status": "working"}) as (binding, server):
        await looker.look(binding)
    (message, headers) = server.seen[0]
    capabilities = message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert capabilities["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert headers["mcp-name"] == TASK
    assert headers["mcp-method"] == "tasks/get"


async def test_an_older_server_hears_nothing_of_the_extension(recorder: Recorder, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    binding = dataclasses.replace(raw("legacy", M3_EFFECTS=str(seen)), tasks=True)
    await recorder.perform(binding, "bare", saved=LEGACY)
    hello = effects_in(seen)[0]["message"]
    assert hello["method"] == "initialize"
    assert "extensions" not in hello["params"]["capabilities"]


@pytest.mark.parametrize("outlives", [False, True])
async def test_a_stdio_server_is_invited_only_where_its_tasks_outlive_it(
    recorder: Recorder, tmp_path: Path, outlives: bool
) -> None:
    server = module("tests.servers.tasks_server", M3_TASKS=str(tmp_path / "tasks"))
    outcome = await recorder.perform(dataclasses.replace(server, tasks=outlives), "report")
    if outlives:
        assert isinstance(outcome, TaskStarted)
        looker = Looker()
        found = await looker.look(dataclasses.replace(server, tasks=True), outcome.task_id)
        assert isinstance(found, Working | Completed)
    else:
        assert isinstance(outcome, Failed)
        assert "Missing required client capability" in outcome.message
        assert not outcome.outcome_unknown


async def test_a_task_that_nobody_invited_is_followed_all_the_same(recorder: Recorder) -> None:
    outcome = await recorder.perform(raw("modern"), "task")
    assert isinstance(outcome, TaskStarted)
    assert (outcome.task_id, outcome.poll_after, outcome.ttl, outcome.message) == ("t-1", 1.0, None, "")


@pytest.mark.parametrize("kind", ["prompt", "resource"])
async def test_only_a_tool_call_may_be_answered_with_a_task(recorder: Recorder, kind: str) -> None:
    answer = {"resultType": "task", "taskId": TASK, "status": "working"}
    with raw_http(lambda message, _: result(message, **answer)) as server:
        binding = HttpBinding(url=server.url, allow_private=True)
        outcome = await recorder.perform(binding, "x://y", kind=kind, saved=MODERN)
    assert isinstance(outcome, Failed)
    assert outcome.code == "protocol_error"


@pytest.mark.parametrize("task_id", [None, "", 7, "x" * 1001, "a\nb"])
async def test_a_task_without_a_usable_id_is_at_work_and_out_of_reach(
    recorder: Recorder, task_id: Any
) -> None:
    with raw_http(lambda message, _: result(message, resultType="task", taskId=task_id)) as server:
        binding = HttpBinding(url=server.url, allow_private=True)
        outcome = await recorder.perform(binding, "work", saved=MODERN)
    assert isinstance(outcome, Failed)
    assert outcome.outcome_unknown


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [(None, 1.0), (500, 0.5), (0, 0.2), (10**12, 60.0), (-5, 1.0), ("9", 1.0), (True, 1.0), (10**40, 1.0)],
)
async def test_the_interval_that_a_server_wishes_is_clamped(
    looker: Looker, interval: Any, seconds: float
) -> None:
    with telling({"status": "working", "pollIntervalMs": interval, "ttlMs": 5000}) as (binding, _):
        outcome = await looker.look(binding)
    assert isinstance(outcome, Working)
    assert (outcome.poll_after, outcome.ttl) == (seconds, 5.0)


async def test_a_promise_to_keep_a_task_for_ages_is_taken_for_ten_years(looker: Looker) -> None:
    with telling({"status": "working", "ttlMs": 10**14}) as (binding, _):
        outcome = await looker.look(binding)
    assert isinstance(outcome, Working)
    assert outcome.ttl == 10 * 365 * 86_400


# --- answers ----------------------------------------------------------------------------------------------


async def test_an_answer_is_written_down_before_it_leaves_and_after_it_is_acknowledged(
    looker: Looker,
) -> None:
    asks = {"status": "input_required", "inputRequests": {"name": question()}}
    with telling(asks, {"status": "completed", "result": {"content": []}}) as (binding, server):
        outcome = await looker.look(binding, responses={"name": NAME})
    assert isinstance(outcome, Completed)
    assert server.methods() == ["tasks/get", "tasks/update", "tasks/get"]
    assert server.seen[1][0]["params"]["inputResponses"] == {"name": NAME}
    assert [what for what, _ in looker.notes] == ["updating", "updated", "finished"]


async def test_only_what_is_asked_for_now_is_answered(looker: Looker) -> None:
    asks = {"status": "input_required", "inputRequests": {"name": question(), "new": question()}}
    with telling(asks) as (binding, server):
        outcome = await looker.look(binding, responses={"name": NAME, "old": NAME, "never": NAME})
    assert server.seen[1][0]["params"]["inputResponses"] == {"name": NAME}
    assert isinstance(outcome, InputRequired)
    assert set(outcome.requests) == {"new"}


async def test_an_acknowledged_key_is_neither_answered_nor_asked_again(looker: Looker) -> None:
    asks = {"status": "input_required", "inputRequests": {"name": question()}}
    with telling(asks) as (binding, server):
        outcome = await looker.look(binding, responses={"name": NAME}, answered=["name"])
    assert isinstance(outcome, Working)
    assert server.methods() == ["tasks/get"]


async def test_an_answer_that_cannot_be_written_down_does_not_leave(looker: Looker) -> None:
    looker.fails_on = "updating"
    asks = {"status": "input_required", "inputRequests": {"name": question()}}
    with telling(asks) as (binding, server), pytest.raises(OSError, match="disk"):
        await looker.look(binding, responses={"name": NAME})
    assert server.methods() == ["tasks/get"]


async def test_a_task_of_somebody_else_gets_no_answer(looker: Looker) -> None:
    asks = {"taskId": "t-2", "status": "input_required", "inputRequests": {"name": question()}}
    with telling(asks) as (binding, server):
        outcome = await looker.look(binding, responses={"name": NAME})
    assert isinstance(outcome, Failed)
    assert outcome.outcome_unknown
    assert server.methods() == ["tasks/get"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"k": {"method": "roots/list", "params": {}}}, "roots/list"),
        (
            {"k": {"method": "elicitation/create", "params": {"mode": "url", "url": "javascript:1"}}},
            "web address",
        ),
        ({f"k{n}": question() for n in range(51)}, "more than 50"),
        ([1], "by key"),
    ],
)
async def test_what_cannot_be_asked_ends_the_task_with_a_reason(
    looker: Looker, asked: Any, words: str
) -> None:
    with telling({"status": "input_required", "inputRequests": asked}) as (binding, _):
        outcome = await looker.look(binding)
    assert isinstance(outcome, Failed)
    assert words in outcome.message
    assert not outcome.outcome_unknown


# --- looks that come to nothing ---------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
async def test_an_http_status_instead_of_the_task_changes_nothing(looker: Looker, status: int) -> None:
    with telling(Reply({}, status)) as (binding, _):
        outcome = await looker.look(binding)
    assert isinstance(outcome, Unanswered)
    assert str(status) in outcome.message


async def test_a_line_that_breaks_while_an_answer_is_on_its_way_changes_nothing(looker: Looker) -> None:
    def answer(message: dict[str, Any], _: Any) -> Reply:
        if message["method"] == "tasks/update":
            return Reply(status=None)
        asks = {"status": "input_required", "inputRequests": {"name": question()}}
        return result(message, taskId=TASK, **asks)

    with raw_http(answer) as server:
        outcome = await looker.look(HttpBinding(url=server.url, allow_private=True), responses={"name": NAME})
    assert isinstance(outcome, Unanswered)
    assert [what for what, _ in looker.notes] == ["updating"]


async def test_a_server_that_is_silent_is_given_up_after_a_while(looker: Looker) -> None:
    outcome = await looker.look(raw("mute"), timeout=0.5)
    assert outcome == Unanswered(message="The server did not answer within 0.5 seconds. Check its log.")


@pytest.mark.parametrize("code", [-32602, -32601])
async def test_a_task_that_the_server_does_not_know_is_gone_and_its_outcome_unknown(
    looker: Looker, code: int
) -> None:
    def answer(message: dict[str, Any], _: Any) -> Reply:
        return error(message, code, "no such task")

    with raw_http(answer) as server:
        binding = HttpBinding(url=server.url, allow_private=True)
        outcome = await looker.look(binding)
        assert await cancel_task(binding, TASK, saved=MODERN, timeout=PATIENCE)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.outcome_unknown) == ("task_gone", True)
    assert outcome.message == "The server does not know its task any more: no such task"


async def test_a_result_that_is_too_large_is_not_asked_for_again(looker: Looker) -> None:
    large = {"status": "completed", "result": {"content": [{"type": "text", "text": "x" * 20_000}]}}
    with telling(large) as (binding, _):
        outcome = await looker.look(binding, max_bytes=10_000)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.outcome_unknown) == ("too_large", True)


async def test_a_result_stays_a_result_whatever_it_claims_to_be(looker: Looker) -> None:
    odd = {"resultType": "task", "taskId": "t-9", "content": [{"type": "text", "text": "done"}]}
    with telling({"status": "completed", "result": odd}) as (binding, _):
        outcome = await looker.look(binding)
    assert isinstance(outcome, Completed)
    assert outcome.raw == odd
    assert looker.notes == [("finished", odd)]


async def test_a_cancellation_names_the_task_and_tells_whether_it_was_heard(looker: Looker) -> None:
    with telling({"status": "working"}) as (binding, server):
        assert await cancel_task(binding, TASK, saved=MODERN, timeout=PATIENCE)
    assert server.methods() == ["tasks/cancel"]
    assert server.seen[0][0]["params"]["taskId"] == TASK
    nobody = HttpBinding(url="http://127.0.0.1:1/mcp", allow_private=True)
    assert not await cancel_task(nobody, TASK, saved=MODERN, timeout=PATIENCE)
