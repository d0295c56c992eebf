"""A worker is killed while server-everything asks; another one goes on with its session, over either transport."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.mcp_client import Answer, Binding, FormRequest, HttpBinding, Request, SessionLost, end_session
from tests.mcp.killed import first_worker, go_on, keep_in
from tests.mcp.recorder import Recorder, accepting
from tests.npm_servers.test_everything_prompts import ADDRESS, EVERY_FIELD, FORM, URL, answer_it_got

pytestmark = pytest.mark.node


async def test_a_form_that_was_open_is_answered_by_the_next_worker_and_the_reply_arrives(
    everything: Binding, tmp_path: Path, recorder: Recorder
) -> None:
    with first_worker(everything, keep_in(tmp_path), FORM, {}) as first:
        first.until("prompt")
        first.kill()
        recorder.answer = accepting(**EVERY_FIELD)
        done = await go_on(recorder, first.live(), keep_in(tmp_path, token=2), binding=everything)
    assert answer_it_got(done) == {"action": "accept", "content": EVERY_FIELD}  # type: ignore[arg-type]
    (asked,) = recorder.asked
    assert isinstance(asked, FormRequest)
    assert set(asked.schema["properties"]) == set(EVERY_FIELD)


async def test_a_page_that_was_declined_by_the_next_worker_is_declined_at_the_server(
    everything: Binding, tmp_path: Path, recorder: Recorder
) -> None:
    async def decline(_: Request) -> Answer:
        return Answer(action="decline")

    with first_worker(everything, keep_in(tmp_path), URL, ADDRESS) as first:
        first.until("prompt")
        first.kill()
        live = first.live()
        recorder.answer = decline
        done = await go_on(recorder, live, keep_in(tmp_path, token=2), binding=everything)
    assert answer_it_got(done) == {"action": "decline"}  # type: ignore[arg-type]


async def test_a_session_that_was_ended_is_lost_for_everybody_else(
    everything: Binding, tmp_path: Path, recorder: Recorder
) -> None:
    with first_worker(everything, keep_in(tmp_path), FORM, {}) as first:
        first.until("prompt")
        first.kill()
        await end_session(everything, first.live(), token=2)
        lost = await go_on(recorder, first.live(), keep_in(tmp_path, token=3), binding=everything)
    assert isinstance(lost, SessionLost), lost
    assert lost.lost == ("server" if isinstance(everything, HttpBinding) else "keeper")
    assert recorder.asked == []
