"""A worker is killed while an older stdio server works for it; another one attaches to the keeper and goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runs.mcp_client import (
    Answer,
    Completed,
    Failed,
    LiveSession,
    Request,
    SessionLost,
    end_session,
)
from tests.mcp.bindings import LEGACY, PATIENCE, effects_in, raw, wait_for
from tests.mcp.killed import first_worker, go_on, keep_in
from tests.mcp.recorder import Recorder, accepting
from tests.mcp.test_child_process import is_running

HELLO = {"name": "Ada"}


def received(effects: Path, what: str) -> list[dict[str, Any]]:
    """The messages that the server got: calls of a tool, or answers to its prompts."""
    messages = [entry["message"] for entry in effects_in(effects)]
    if what == "answers":
        return [message for message in messages if "method" not in message]
    return [message for message in messages if message.get("method") == what]


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    return tmp_path / "effects"


async def test_a_prompt_that_was_open_is_asked_again_under_its_id_and_its_answer_arrives(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    server = raw("legacy", M3_EFFECTS=str(effects))
    with first_worker(server, keep, "asks_in_turn", {"times": 1}) as first:
        first.until("prompt")
        first.kill()
        recorder.answer = accepting(name="Ada")
        done = await go_on(recorder, first.live(), keep_in(tmp_path, token=2))
    assert isinstance(done, Completed), done
    assert done.raw["structuredContent"] == {"replies": [{"action": "accept", "content": HELLO}]}
    assert [request.message for request in recorder.asked] == ["Question 1"]
    assert recorder.asked[0].origin is not None
    assert recorder.asked[0].origin.jsonrpc_id == 1
    assert [entry[0] for entry in recorder.journal] == ["result"], "the call was sent by another"
    assert recorder.journal[0][1] == first.live().operation_id
    assert len(received(effects, "tools/call")) == 1
    assert len(received(effects, "answers")) == 1


async def test_a_prompt_that_was_answered_is_not_asked_again_and_the_next_one_is(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    server = raw("legacy", M3_EFFECTS=str(effects))
    with first_worker(server, keep, "asks_in_turn", {"times": 3}, {"name": "first"}) as first:
        first.until("prompt", 2)
        first.kill()
        recorder.answer = accepting(name="Ada")
        done = await go_on(recorder, first.live(), keep_in(tmp_path, token=2))
    assert isinstance(done, Completed), done
    contents = [reply["content"] for reply in done.raw["structuredContent"]["replies"]]
    assert contents == [{"name": "first"}, HELLO, HELLO]
    assert [request.message for request in recorder.asked] == ["Question 2", "Question 3"]
    assert len(received(effects, "tools/call")) == 1


async def test_several_prompts_that_were_open_at_once_are_all_asked_again(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    server = raw("legacy", M3_EFFECTS=str(effects))
    with first_worker(server, keep, "asks_often", {"times": 4}) as first:
        first.until("prompt", 4)
        first.kill()
        recorder.answer = accepting(name="Ada")
        done = await go_on(recorder, first.live(), keep_in(tmp_path, token=2))
    assert isinstance(done, Completed), done
    origins = [request.origin.jsonrpc_id for request in recorder.asked if request.origin]
    assert sorted(map(str, origins)) == [f"ask-{number}" for number in range(4)]
    assert len(received(effects, "answers")) == 4


async def test_a_reply_that_came_while_nobody_was_there_is_not_lost(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    server = raw("legacy", M3_EFFECTS=str(effects))
    arguments = {"times": 1, "then": 0.5}
    with first_worker(server, keep, "asks_in_turn", arguments, HELLO) as first:
        first.until("prompt")
        wait_for(lambda: received(effects, "answers"), "the answer to reach the server")
        first.kill()
        await asyncio.sleep(0.7)  # the server replies into the void
        done = await go_on(recorder, first.live(), keep_in(tmp_path, token=2))
    assert isinstance(done, Completed), done
    assert recorder.asked == []
    assert len(received(effects, "tools/call")) == 1


async def test_a_session_of_which_nobody_has_a_record_is_not_kept_and_its_call_not_sent(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    """The store refuses the record (A11); a worker that is killed at this point leaves as little behind."""
    keep = keep_in(tmp_path)
    keep.leave = True

    class StoreIsFullError(Exception):
        pass

    async def refuse(_: Any) -> None:
        raise StoreIsFullError

    recorder._session = refuse  # type: ignore[method-assign]
    server = raw("legacy", M3_EFFECTS=str(effects))
    with pytest.raises(StoreIsFullError):
        await recorder.perform(server, "asks_in_turn", {"times": 1}, saved=LEGACY, keep=keep)
    assert received(effects, "tools/call") == []
    wait_for(lambda: not list(keep.folder.glob("*.sock")), "the keeper to end")


async def test_stopping_quietly_leaves_the_session_and_the_server_notices_nothing(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    asked = asyncio.Event()

    async def wait(_: Request) -> Answer:
        keep.leave = True
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    recorder.answer = wait
    server = raw("legacy", M3_EFFECTS=str(effects))
    call = asyncio.create_task(
        recorder.perform(server, "asks_in_turn", {"times": 1}, saved=LEGACY, keep=keep)
    )
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    before = effects_in(effects)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (info,) = recorder.sessions
    assert info.pid is not None
    assert is_running(info.pid)

    second = Recorder(answer=accepting(name="Ada"))
    done = await go_on(second, live_of(recorder), keep_in(tmp_path, token=2))
    assert isinstance(done, Completed), done
    assert effects_in(effects)[: len(before)] == before
    assert [m["result"] for m in received(effects, "answers")] == [{"action": "accept", "content": HELLO}]
    assert received(effects, "notifications/cancelled") == []
    assert not is_running(info.pid), "the call is over, so is its session"
    assert not list(keep.folder.glob("*.sock"))


def live_of(recorder: Recorder) -> LiveSession:
    info = recorder.sessions[-1]
    return LiveSession(negotiated=info.negotiated, operation_id=info.jsonrpc_id, keeper=info.keeper)


async def test_cancelling_a_call_whose_session_is_not_to_be_left_cancels_it_at_its_server(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    asked = asyncio.Event()

    async def wait(_: Request) -> Answer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    recorder.answer = wait
    server = raw("legacy", M3_EFFECTS=str(effects))
    call = asyncio.create_task(
        recorder.perform(server, "asks_in_turn", {"times": 1}, saved=LEGACY, keep=keep)
    )
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (cancelled,) = received(effects, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == recorder.sessions[0].jsonrpc_id
    assert recorder.sessions[0].pid is not None
    assert not is_running(recorder.sessions[0].pid)


async def test_a_call_that_nobody_wants_any_more_is_cancelled_at_its_server_by_whoever_notices(
    tmp_path: Path, effects: Path
) -> None:
    keep = keep_in(tmp_path)
    server = raw("legacy", M3_EFFECTS=str(effects))
    with first_worker(server, keep, "asks_in_turn", {"times": 1}) as first:
        first.until("prompt")
        pid = first.until("session")["session"]["pid"]
        first.kill()
        await end_session(None, first.live(), token=2)
    (cancelled,) = received(effects, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == first.live().operation_id
    assert not is_running(pid)
    await end_session(None, first.live(), token=3)  # what is gone already is gone


async def test_a_keeper_that_was_killed_is_told_apart_from_a_server_that_died(
    tmp_path: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    with first_worker(raw("legacy"), keep, "asks_in_turn", {"times": 1}) as first:
        first.until("prompt")
        first.kill()
        (keeper,) = keepers_of(first.live().keeper)
        os.kill(keeper, signal.SIGKILL)
        wait_for(lambda: not is_running(keeper), "the keeper to be gone")
        lost = await go_on(recorder, first.live(), keep_in(tmp_path, token=2))
    assert isinstance(lost, SessionLost)
    assert lost.lost == "keeper"
    assert "process that kept the server's session" in lost.message
    pid = first.until("session")["session"]["pid"]
    wait_for(lambda: not is_running(pid), "the server to end with its keeper")


async def test_a_server_that_dies_while_nobody_is_there_is_reported_with_its_last_words(
    tmp_path: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path)
    with first_worker(raw("legacy"), keep, "asks_then_dies", {"after": 0.4}) as first:
        first.until("prompt")
        first.kill()
        pid = first.until("session")["session"]["pid"]
        wait_for(lambda: not is_running(pid), "the server to die")
        recorder.answer = accepting(name="too late")
        lost = await go_on(recorder, first.live(), keep_in(tmp_path, token=2))
    assert isinstance(lost, SessionLost), lost
    assert lost.lost == "server"
    assert "its process has ended" in lost.message
    wait_for(lambda: not list(keep.folder.glob("*.sock")), "the keeper to end once that was read")


async def test_a_worker_with_an_older_right_cannot_take_the_session_back(
    tmp_path: Path, effects: Path, recorder: Recorder
) -> None:
    keep = keep_in(tmp_path, token=5)
    server = raw("legacy", M3_EFFECTS=str(effects))
    with first_worker(server, keep, "asks_in_turn", {"times": 1}) as first:
        first.until("prompt")
        first.kill()
        recorder.answer = accepting(name="stale")
        stale = await go_on(recorder, first.live(), keep_in(tmp_path, token=4))
        assert isinstance(stale, Failed), stale
        assert recorder.asked == []
        recorder.answer = accepting(name="Ada")
        done = await go_on(recorder, first.live(), keep_in(tmp_path, token=6))
    assert isinstance(done, Completed), done
    assert [m["result"]["content"] for m in received(effects, "answers")] == [HELLO]


def keepers_of(socket: str | None) -> list[int]:
    """Pids of the processes that have this socket's path as their argument."""
    return _keepers(lambda word: word == str(socket))


def keepers_in(folder: Path) -> list[int]:
    """Pids of the processes whose socket is in this folder."""
    return _keepers(lambda word: Path(word).parent == folder)


def _keepers(is_theirs: Callable[[str], bool]) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if "runs.keeper" in words and any(map(is_theirs, words)):
                found.append(int(folder.name))
    return found
