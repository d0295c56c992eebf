"""What is recorded around the wire: before the write, and before anything judges the answer."""

from __future__ import annotations

from typing import Any

import pytest

from runs.mcp_client import Completed, HttpBinding, Operation, SessionInfo, perform
from tests.mcp.bindings import LEGACY, PATIENCE, effects_in, raw
from tests.mcp.recorder import Recorder, accepting


async def test_the_operation_alone_is_recorded_sent_then_result(
    playground: HttpBinding, recorder: Recorder
) -> None:
    done = await recorder.perform(playground, "echo", {"value": "hi"})
    assert isinstance(done, Completed)
    (sent, sent_id, method, params), (result, result_id, _, payload) = recorder.journal
    assert (sent, result, method) == ("sent", "result", "tools/call")
    assert sent_id == result_id
    assert params["arguments"] == {"value": "hi"}
    assert payload == done.raw


async def test_an_error_answer_is_recorded_with_its_code(recorder: Recorder) -> None:
    await recorder.perform(raw("modern"), "out_of_stock")
    event, _, _, payload = recorder.journal[-1]
    assert (event, payload["code"]) == ("error", -32000)


async def test_no_two_legs_share_a_jsonrpc_id(playground: HttpBinding, recorder: Recorder) -> None:
    first = await recorder.perform(playground, "state_only")
    await recorder.perform(playground, "state_only", request_state=getattr(first, "request_state", None))
    await recorder.perform(playground, "echo", {"value": "x"}, saved=LEGACY)
    ids = [jsonrpc_id for event, jsonrpc_id, _, _ in recorder.journal if event == "sent"]
    assert len(ids) == len(set(ids)) == 3


@pytest.mark.parametrize("tool", ["no_content", "odd_content", "task"])
async def test_a_result_that_breaks_the_protocol_is_recorded_first(recorder: Recorder, tool: str) -> None:
    await recorder.perform(raw("modern"), tool)
    assert [entry[0] for entry in recorder.journal] == ["sent", "result"]


@pytest.mark.parametrize("error", [ValueError("lease lost"), OSError("disk"), RuntimeError("gone")])
async def test_what_cannot_be_recorded_is_not_sent(tmp_path: Any, error: Exception) -> None:
    async def refuse(*_: Any) -> None:
        raise error

    server = raw("modern", M3_EFFECTS=str(tmp_path / "seen"))
    with pytest.raises(type(error), match=str(error)) as caught:
        await perform(
            server,
            Operation(kind="tool", name="bare"),
            saved=None,
            elicit=None,
            journal=refuse,
            timeout=PATIENCE,
        )
    assert caught.value is error
    methods = [entry["message"]["method"] for entry in effects_in(tmp_path / "seen")]
    assert methods == ["server/discover"]


async def test_a_result_that_cannot_be_recorded_is_an_exception_not_a_result() -> None:
    async def refuse_result(event: str, *_: Any) -> None:
        if event == "result":
            raise ValueError("lease lost")

    with pytest.raises(ValueError, match="lease lost"):
        await perform(
            raw("modern"),
            Operation(kind="tool", name="bare"),
            saved=None,
            elicit=None,
            journal=refuse_result,
            timeout=PATIENCE,
        )


async def test_an_exception_of_the_progress_callback_comes_out(playground: HttpBinding) -> None:
    async def journal(*_: Any) -> None:
        return None

    async def progress(*_: Any) -> None:
        raise ValueError("lease lost")

    with pytest.raises(ValueError, match="lease lost"):
        await perform(
            playground,
            Operation(kind="tool", name="counts"),
            saved=LEGACY,
            elicit=None,
            journal=journal,
            progress=progress,
            timeout=PATIENCE,
        )


@pytest.mark.parametrize("saved", [None, LEGACY], ids=["modern", "legacy"])
async def test_progress_is_reported_on_both_generations(
    playground: HttpBinding, recorder: Recorder, saved: Any
) -> None:
    await recorder.perform(playground, "counts", saved=saved)
    assert recorder.progress == [(1.0, 3.0, "step 1"), (2.0, 3.0, "step 2"), (3.0, 3.0, "step 3")]


async def test_a_live_http_session_is_described_for_whoever_attaches_to_it(
    playground: HttpBinding, recorder: Recorder
) -> None:
    recorder.answer = accepting(name="Ada")
    await recorder.perform(playground, "ask_in_turn", {"times": 1}, saved=LEGACY, report_session=True)
    first, *later = recorder.sessions
    assert isinstance(first, SessionInfo)
    assert first.session_id
    assert first.resumption_token is None
    assert first.jsonrpc_id == recorder.journal[0][1]
    assert [info.resumption_token for info in later if info.resumption_token]
    assert {info.session_id for info in recorder.sessions} == {first.session_id}


async def test_a_child_process_is_described_by_its_pid(recorder: Recorder) -> None:
    await recorder.perform(raw("legacy"), "bare", saved=LEGACY, report_session=True)
    (info,) = recorder.sessions
    assert info.pid
    assert info.session_id is None
