"""What a keeper keeps for the next client, and what it lets through to the server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runs.keeper.backlog import Backlog


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


CALL = line(id="m3-1", method="tools/call")
QUESTION = line(id=7, method="elicitation/create")
ANSWER = line(id=7, result={"action": "accept"})
REPLY = line(id="m3-1", result={})


def test_a_question_is_kept_until_it_is_answered_and_takes_one_answer() -> None:
    backlog = Backlog()
    backlog.heard(QUESTION)
    assert backlog.lines() == [QUESTION]
    assert backlog.may_say(ANSWER)
    assert backlog.lines() == []
    assert not backlog.may_say(ANSWER), "an answer is delivered once"


def test_an_answer_to_a_question_that_nobody_asked_does_not_reach_the_server() -> None:
    backlog = Backlog()
    assert not backlog.may_say(ANSWER)
    backlog.heard(QUESTION)
    assert not backlog.may_say(line(id="7", result={})), '7 and "7" are two ids'
    assert backlog.may_say(line(id=7.0, error={"code": 0, "message": ""})), "7 and 7.0 are one"


def test_the_question_that_an_id_is_used_for_again_takes_an_answer_of_its_own() -> None:
    backlog = Backlog()
    backlog.heard(QUESTION)
    assert backlog.may_say(ANSWER)
    backlog.heard(QUESTION)
    assert backlog.lines() == [QUESTION]
    assert backlog.may_say(ANSWER)


def test_a_call_reaches_the_server_once_per_id() -> None:
    backlog = Backlog()
    assert backlog.may_say(CALL)
    assert not backlog.may_say(CALL)
    backlog.heard(REPLY)
    assert not backlog.may_say(CALL), "also not after its reply"


def test_a_reply_is_kept_until_something_else_is_asked() -> None:
    backlog = Backlog()
    backlog.may_say(CALL)
    backlog.heard(REPLY)
    assert backlog.lines() == [REPLY]
    assert not backlog.may_say(CALL)
    assert backlog.lines() == [REPLY], "a client that waits for it again still gets it"
    assert backlog.may_say(line(id="m3-2", method="tools/list"))
    assert backlog.lines() == []
    assert backlog.bytes == 0


def test_a_question_that_the_server_withdraws_is_forgotten() -> None:
    backlog = Backlog()
    backlog.heard(QUESTION)
    backlog.heard(line(method="notifications/cancelled", params={"requestId": 7}))
    assert backlog.lines() == []


@pytest.mark.parametrize(
    "noise",
    [
        b"Starting up...\n",
        b"[1]\n",
        b"[" * 100_000 + b"\n",
        line(method="notifications/progress"),
        line(id="never asked", result={}),
        line(method="notifications/cancelled", params=[]),
    ],
)
def test_what_needs_no_answer_is_not_kept(noise: bytes) -> None:
    backlog = Backlog()
    backlog.heard(noise)
    assert (backlog.lines(), backlog.bytes) == ([], 0)


def test_lines_come_in_the_order_in_which_the_server_said_them() -> None:
    backlog = Backlog()
    backlog.may_say(CALL)
    second = line(id=8, method="elicitation/create")
    for said in (QUESTION, second, REPLY):
        backlog.heard(said)
    assert backlog.lines() == [QUESTION, second, REPLY]
    assert backlog.bytes == len(QUESTION) + len(second) + len(REPLY)
