"""A call was made and nobody knows what became of it: a person says so, and nothing is repeated by itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.admin import add_agent, add_server
from tests.browser.product import PATIENCE, Person, Product
from tests.mcp.bindings import ROOT

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation with little patience, whose host allows a server that never answers a call."""
    listed = tmp_path_factory.mktemp("listed") / "tools.json"
    listed.write_text(
        json.dumps([{"name": "hangs", "title": "Post a parcel", "inputSchema": {"type": "object"}}])
    )
    script = str(ROOT / "tests" / "servers" / "raw.py")
    entries = {"post": {"command": sys.executable, "args": [script, "modern", f"tools={listed}"]}}
    running = Product(
        tmp_path_factory.mktemp("product"), M3_STDIO_SERVERS=json.dumps(entries), M3_CALL_TIMEOUT_SECONDS="3"
    )
    running.start()
    yield running
    if running.process is not None:
        running.stop()


@pytest.mark.parametrize(
    ("button", "word", "text"),
    [
        ("happened", "Completed", "Parcel: done"),
        ("stop", "Failed", "stopped the run at a call of unknown outcome"),
    ],
)
def test_a_person_says_what_became_of_the_call(
    person: Callable[..., Person], button: str, word: str, text: str
) -> None:
    ada = person("ada")
    if button == "happened":
        add_server(ada, "post", "entry", "post")
        steps = [
            {"call": "post:hangs", "args": {"to": "Pune"}, "as": "p"},
            {"finish": "Parcel: {{ p.status }}"},
        ]
        add_agent(ada, "Postman", ["post"], {"steps": steps})
    run = ada.start_run("Postman", "Send it", mode="autonomous")
    ada.open_card_of(run, "outcome")
    card = ada.page.locator("#round-card")
    expect(card).to_contain_text("The call was started and its result is not known.")
    expect(card).to_contain_text("Pune")
    ada.press(button)
    ada.expect_end(run, word, text)


def test_running_it_again_is_asked_about_again(person: Callable[..., Person]) -> None:
    ada = person("ada")
    run = ada.start_run("Postman", "Send it", mode="autonomous")
    ada.open_card_of(run, "outcome")
    first = ada.page.locator("#round-card").get_attribute("data-round")
    ada.press("run_again")
    ada.page.goto(f"/runs/{run}")
    waiting = ada.page.locator(f"#run-head .waiting a:not([href*='{first}'])")
    expect(waiting).to_be_visible(timeout=PATIENCE)
    waiting.click()
    ada.press("stop")
