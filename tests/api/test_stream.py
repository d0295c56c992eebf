"""A run as server-sent events, from the process that people start (m8tes-http 6)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.live import ASK, Live, Reader, live, types
from tests.mcp.bindings import wait_for
from tests.requirements import new_postgres_database

MANY = 50
LONG = 600
"""Seconds of a run that is still asleep when its test ends."""

SAYS = ["text-start", "text-delta", "text-end"]
ASKS = ["tool-call-start", "tool-call-delta", "tool-call-end", "permission_request"]
AGENTS = {
    "quick": {"steps": [{"say": "Hello."}, {"finish": "Bye."}]},
    "asks": {"steps": [{"say": "Hm."}, ASK, {"say": "Thanks."}, {"finish": "asked"}]},
    "sleeps": {"steps": [{"say": "One."}, {"sleep": LONG}, {"finish": "never"}]},
    "talks": {
        "steps": [{"say": "One."}, {"sleep": 2}, {"say": "Two."}, {"sleep": LONG}, {"finish": "never"}]
    },
    "fails": {"steps": [{"say": "Oh."}, {"sleep": 1}, {"fail": "No luck."}]},
    "odd": {"steps": [{"say": "né\u2028\u0085\nx"}, {"sleep": LONG}, {"finish": "never"}]},
    "starts": {
        "steps": [{"run": {"agent": "quick", "message": "go"}, "as": "x"}, {"say": "So: {{ x.result }}"}, ASK]
    },
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("stream"), AGENTS) as started:
        yield started


def test_a_stream_says_what_it_is_and_is_not_held_back_on_the_way(product: Live) -> None:
    run = product.start("sleeps")
    with product.read(run) as reader:
        headers = reader.response.headers
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        assert (headers["x-run-id"], headers["x-accel-buffering"]) == (str(run), "no")
        assert (headers["cache-control"], headers["transfer-encoding"]) == ("no-store", "chunked")
        assert "set-cookie" not in headers
        assert reader.until("metadata") == [{"type": "metadata", "run_id": run}]


def test_a_stream_ends_where_somebody_has_to_decide(product: Live) -> None:
    run = product.start("asks")
    with product.read(run) as reader:
        seen = list(reader.frames())

    kept = [frame for frame in seen if frame["type"] != "replay_complete"]
    assert types(kept) == ["metadata", *SAYS, *ASKS, "awaiting_approval"]
    assert seen[-1] == {**kept[-2], "type": "awaiting_approval"}
    assert (seen[-1]["tool_name"], seen[-1]["tool_use_id"]) == ("AskUserQuestion", f"call_{run}_2")
    assert seen[-1]["tool_input"]["questions"][0]["question"] == "Which segment?"


def test_whoever_joins_after_deciding_reads_everything_again_and_then_the_rest(product: Live) -> None:
    run = product.start("asks")
    with product.read(run) as reader:
        reader.until("awaiting_approval")
    product.answer(run)
    with product.read(run) as reader:
        seen = [frame for frame in reader.frames() if frame["type"] != "replay_complete"]

    rest = ["permission_resolved", "tool-result-end", *SAYS, *SAYS, "done"]
    assert types(seen) == ["metadata", *SAYS, *ASKS, *rest]
    resolved, result = seen[8:10]
    assert (resolved["request_id"], resolved["resolved_status"]) == (seen[7]["request_id"], "allowed")
    assert result["result"] == {"answers": {"Which segment?": "enterprise"}}
    assert seen[-1]["completion_state"] == "completed"


def test_what_was_there_is_told_from_what_is_live(product: Live) -> None:
    run = product.start("sleeps")
    with product.read(run) as first:
        first.until("text-end")
    with product.read(run) as second:
        assert types(second.until("replay_complete")) == ["metadata", *SAYS, "replay_complete"]


def test_a_failed_run_ends_its_stream_with_an_error(product: Live) -> None:
    with product.read(product.start("fails")) as reader:
        error, done = list(reader.frames())[-2:]
    assert error == {"type": "error", "error": "No luck.", "error_code": "agent_failed"}
    assert (done["type"], done["completion_state"]) == ("done", "failed")


def test_a_cancelled_run_ends_its_stream_at_once(product: Live) -> None:
    run = product.start("sleeps")
    with product.read(run) as reader, product.client() as client:
        reader.until("text-end")
        assert client.post(f"runs/{run}/cancel").status_code == 200
        assert list(reader.frames())[-1] == {"type": "cancelled", "run_id": run}


def test_a_run_that_is_over_has_no_stream(product: Live) -> None:
    run = product.start("quick")
    with product.client() as client:
        wait_for(lambda: client.get(f"runs/{run}").json()["status"] == "completed", "the end")
        answer = client.get(f"runs/{run}/stream")
    assert (answer.status_code, answer.json()["error"]["error_code"]) == (409, "run_not_active")
    assert answer.json()["error"]["details"]["error_code"] == "run_not_active"


def test_a_run_of_another_account_looks_like_none(product: Live) -> None:
    run = product.start("sleeps")
    with product.client(product.other_key) as client, product.client("m3_nobody_x") as nobody:
        assert client.get(f"runs/{run}/stream").status_code == 404
        assert client.get("runs/987654321/stream").status_code == 404
        assert nobody.get(f"runs/{run}/stream").status_code == 401


def test_an_event_source_of_a_browser_is_served_although_it_accepts_nothing_else(product: Live) -> None:
    run = product.start("sleeps")
    headers = {"Accept": "text/event-stream"}
    with Reader(product.client(), "GET", f"runs/{run}/stream", headers=headers) as reader:
        assert reader.until("text-end")
    with product.client() as client:
        refused = client.get("runs/987654321/stream", headers=headers)
    assert (refused.status_code, refused.headers["content-type"]) == (404, "application/json")


def test_characters_at_which_some_readers_end_a_line_arrive_whole(product: Live) -> None:
    with product.read(product.start("odd")) as reader:
        raw = next(line for line in reader._lines if "text-delta" in line)
    assert raw.isascii()
    assert json.loads(raw.removeprefix("data: "))["delta"] == "né\u2028\u0085\nx"


def test_a_run_under_the_run_is_a_call_with_its_result(product: Live) -> None:
    with product.read(product.start("starts")) as reader:
        seen = reader.until("awaiting_approval")
    (started, *_) = [frame for frame in seen if frame["type"] == "tool-call-start"]
    assert started["toolName"] == "Agent"
    (result,) = [frame for frame in seen if frame["type"] == "tool-result-end"]
    assert (result["toolCallId"], result["result"]) == (started["toolCallId"], "Bye.")


def test_starting_a_run_can_answer_with_its_stream(product: Live) -> None:
    body = {"teammate_id": product.agents()["quick"], "message": "go", "stream": True}
    with Reader(product.client(), "POST", "runs/", json=body) as reader:
        seen = list(reader.frames())
        assert reader.response.headers["x-run-id"] == str(seen[0]["run_id"])
    assert types(seen) == ["metadata", *SAYS, *SAYS, "done"]


def test_a_reply_streams_its_own_turn_alone(product: Live) -> None:
    run = product.start("quick")
    with product.client() as client:
        wait_for(lambda: client.get(f"runs/{run}").json()["status"] == "completed", "the first turn")
    body = {"message": "and now?", "stream": True}
    with Reader(product.client(), "POST", f"runs/{run}/reply", json=body) as reader:
        seen = list(reader.frames())
    assert (types(seen)[0], types(seen)[-1], types(seen).count("done")) == ("metadata", "done", 1)
    assert "Hello." not in [frame.get("delta") for frame in seen]


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_many_readers_of_one_run_hold_no_thread_and_leave_nothing_behind(product: Live) -> None:
    pid, run = product.up.process.pid, product.start("talks")
    product.read(run).close()  # whatever is made once is made now
    threads_before, files_before = threads(pid), files(pid)
    with ExitStack() as stack:
        readers = [stack.enter_context(product.read(run)) for _ in range(MANY)]
        for reader in readers:
            assert reader.until("text-delta")[-1]["delta"] == "One."
        assert threads(pid) < threads_before + 10
        for reader in readers:
            assert reader.until("text-delta")[-1]["delta"] == "Two."
        assert files(pid) > files_before + MANY - 10  # what the first reader left may have been closed since
    wait_for(lambda: files(pid) < files_before + 10, "the connections to be gone")


def test_readers_who_wait_hold_no_connection_of_the_pool(tmp_path: Path) -> None:
    with (
        new_postgres_database() as url,
        live(tmp_path, AGENTS, DATABASE_URL=url, M3_DATABASE_CONNECTIONS="8") as product,
        ExitStack() as stack,
    ):
        run = product.start("sleeps")
        for _ in range(MANY // 2):
            stack.enter_context(product.read(run)).until("text-end")
        with product.client() as client:
            assert client.get(f"runs/{run}").json()["status"] == "running"
