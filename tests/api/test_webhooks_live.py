"""Webhooks from the process that people start: told after the commit, and never in a run's way (m8tes-http 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.live import ASK, Live, live
from tests.core.pages import examples
from tests.mcp.bindings import wait_for
from tests.services.receiver import is_signed, receiver

AGENTS = {
    "quick": {"steps": [{"say": "Hello."}, {"finish": "Bye."}]},
    "asks": {"steps": [ASK, {"finish": "asked"}]},
}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("webhooks"), AGENTS, M3_ALLOW_PRIVATE_URLS="1") as started:
        yield started


def add(product: Live, url: str, *events: str) -> dict[str, Any]:
    with product.client() as client:
        answer = client.post("webhooks/", json={"url": url, "events": list(events)})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made


def test_a_pause_is_told_and_can_be_answered_with_what_was_told(product: Live) -> None:
    with receiver() as there:
        secret = add(product, there.url, "run.awaiting_input", "run.completed")["secret"]
        run = product.start("asks")
        (asked,) = there.wait(1)
        question = asked.message["data"]["questions"][0]["question"]
        with product.client() as client:
            body = {
                "answers": {question: "enterprise"},
                "request_id": asked.message["data"]["request_ids"][0],
            }
            answer = client.post(f"runs/{asked.message['data']['id']}/answer", json=body)
            assert answer.status_code == 200, answer.text
        _, ended = there.wait(2)
    assert [got.message["type"] for got in (asked, ended)] == ["run.awaiting_input", "run.completed"]
    assert (ended.message["data"]["id"], ended.message["data"]["output"]) == (run, "asked")
    documented: dict[str, Any] = {}
    (example,) = [text for _, text in examples("docs/api.md", "python") if "is_genuine" in text]
    exec(example, documented)
    for got in (asked, ended):
        assert is_signed(got, secret)
        assert documented["is_genuine"](got.headers, got.body, secret)
        assert not documented["is_genuine"](got.headers, got.body + b" ", secret)


def test_an_endpoint_that_hangs_delays_no_run(product: Live) -> None:
    with receiver() as hanging:
        hanging.hold.clear()
        add(product, hanging.url, "run.started", "run.completed")
        run = product.start("quick")
        with product.client() as client:
            wait_for(lambda: client.get(f"runs/{run}").json()["status"] == "completed", "the run")
        assert len(hanging.wait(1)) == 1


def test_the_log_says_what_came_of_it_and_sends_it_again(product: Live) -> None:
    with receiver((202, {}, b"thanks")) as there:
        made = add(product, there.url, "run.started")
        product.start("quick")
        there.wait(1)
        address = f"webhooks/{made['id']}/deliveries"
        with product.client() as client:
            (row,) = wait_for(
                lambda: [row for row in client.get(address).json()["data"] if row["status"] == "success"],
                "the log",
            )
            assert (row["response_status_code"], row["response_body"]) == (202, "thanks")
            assert client.post(f"{address}/{row['id']}/redeliver").status_code == 201
        first, second = there.wait(2)
    assert first.headers["Webhook-Id"] == second.headers["Webhook-Id"] == row["event_id"]
    assert first.body == second.body
