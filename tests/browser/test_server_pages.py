"""Servers that are gone, silent, huge or wrong: their page says so in a sentence, and nothing else is disturbed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.admin import add_agent, add_server, look_at_it, write_agent
from tests.browser.product import PATIENCE, Person, Product
from tests.mcp.bindings import ROOT, free_port

pytestmark = pytest.mark.browser

People = Callable[..., Person]

LOOK = "10"
"""Seconds that the product gives a server that says nothing."""

OBJECT = {"type": "object"}
MANY = [
    {"name": f"tool_{number:03}", "description": f"Number {number}.", "inputSchema": OBJECT}
    for number in range(500)
]
MALFORMED: list[Any] = [
    {"name": "fine", "inputSchema": OBJECT},
    {"name": "<script>alert(1)</script>", "inputSchema": OBJECT},
    {"name": "no_schema"},
    {"name": 7, "inputSchema": OBJECT},
    {"name": "fine", "inputSchema": OBJECT},
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "hologram"}}}},
    "not a tool",
]


@pytest.fixture(scope="module")
def product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation whose host allows three odd programs."""
    folder = tmp_path_factory.mktemp("listed")

    def program(*options: str) -> dict[str, Any]:
        script = str(ROOT / "tests" / "servers" / "raw.py")
        return {"command": sys.executable, "args": [script, *options]}

    entries = {
        "silent": program("mute"),
        "many": program("modern", f"tools={listing(folder / 'many.json', MANY)}"),
        "malformed": program("legacy", f"tools={listing(folder / 'malformed.json', MALFORMED)}"),
    }
    running = Product(
        tmp_path_factory.mktemp("product"),
        M3_STDIO_SERVERS=json.dumps(entries),
        M3_CALL_TIMEOUT_SECONDS=LOOK,
    )
    running.start()
    yield running
    if running.process is not None:
        running.stop()


def listing(path: Path, tools: list[Any]) -> Path:
    path.write_text(json.dumps(tools))
    return path


def test_a_url_where_nobody_listens_is_named_as_unreachable_and_a_run_says_the_same(person: People) -> None:
    ada = person("ada")
    add_server(ada, "nobody", "url", f"http://127.0.0.1:{free_port()}/mcp")
    look_at_it(ada, "The server cannot be reached")
    expect(ada.page.locator("#looked-at")).to_contain_text(
        "Check that it runs and that its address is right."
    )
    expect(ada.page.locator("#looked-at")).to_contain_text("Not reachable")

    step = {"call": "nobody:anything", "args": {}, "as": "r"}
    add_agent(ada, "Hopeful", ["nobody"], {"steps": [step, {"finish": "It went on after: {{ r.status }}"}]})
    run = ada.start_run("Hopeful", "go", mode="autonomous")
    ada.expect_end(run, "Completed", "It went on after: failed")
    expect(ada.page.locator("main")).to_contain_text("The server cannot be reached")


def test_a_command_that_does_not_exist_is_named(person: People) -> None:
    ada = person("ada")
    add_server(ada, "typo", "command", "/no/such/program --flag 'a b'")
    look_at_it(ada, "The server cannot be reached: the command “/no/such/program” was not found.")
    expect(ada.page.locator("#looked-at")).to_contain_text("Not reachable")


def test_while_a_silent_server_is_waited_for_other_pages_and_runs_go_on(person: People) -> None:
    ada = person("ada")
    add_server(ada, "silent", "entry", "silent")
    button = ada.page.locator(".test-form button")
    button.click()
    expect(button).to_be_disabled()
    expect(button).to_have_text(f"Looking, at most {LOOK} s…", use_inner_text=True)

    other = ada.context.new_page()
    other.goto("/servers")
    expect(other.locator("li.row", has_text="silent")).to_contain_text("Not tested")
    assert button.is_disabled(), "the list of servers waited for the silent one"

    expect(ada.page.locator("#looked-at")).to_contain_text(
        f"The server did not answer within {LOOK} seconds. Check its log.", timeout=PATIENCE
    )
    expect(button).to_be_enabled()
    run = ada.start_run("Customer success", "What should we prioritize?")
    ada.open_card_of(run, "question")


def test_five_hundred_tools_are_listed_and_a_wrong_name_among_them_is_refused_with_its_place(
    person: People,
) -> None:
    ada = person("ada")
    add_server(ada, "many", "entry", "many")
    look_at_it(ada, "500 tools")
    expect(ada.page.locator(".tools > li")).to_have_count(500)
    expect(ada.page.locator(".tools > li").last).to_contain_text("tool_499")
    expect(ada.page.locator("#looked-at")).to_contain_text("Reachable")

    playbook = {"steps": [{"say": "Hello"}, {"parallel": [{"call": "many:tool_500", "args": {}}]}]}
    write_agent(ada, "Careless", ["many"], playbook)
    summary = ada.page.locator(".error-summary")
    expect(summary).to_contain_text("steps[1].parallel[0].call: the server many has no tool tool_500.")
    expect(ada.page.get_by_label("Playbook", exact=True)).to_have_value(json.dumps(playbook, indent=2))


def test_malformed_definitions_are_set_aside_and_named_and_the_good_ones_are_kept(person: People) -> None:
    ada = person("ada")
    add_server(ada, "malformed", "entry", "malformed")
    look_at_it(ada, "Reachable, with problems")
    looked_at = ada.page.locator("#looked-at")
    for sentence in (
        "The tool “no_schema” has an input schema that does not describe an object.",
        "A tool without a name was left out.",
        "The name “fine” is listed twice; only the first entry is kept.",
        "The input of the tool “odd” cannot be checked: The schema has an unknown type at /properties/a/type.",
    ):
        expect(looked_at.locator(".notice.warn li").filter(has_text=sentence).first).to_be_visible()
    names = looked_at.locator(".tools b.mono")
    expect(names).to_have_text(["fine", "<script>alert(1)</script>", "odd"])


def test_a_viewer_reads_servers_and_is_offered_nothing_to_change(person: People) -> None:
    ada, vera = person("ada"), person("vera")
    path = add_server(ada, "shown", "entry", "many")
    look_at_it(ada, "500 tools")
    for offered in ("Edit", "Remove…"):
        expect(ada.page.get_by_role("link", name=offered)).to_be_visible()

    vera.page.goto("/servers")
    expect(vera.page.get_by_role("heading", name="Servers")).to_be_visible()
    expect(vera.page.get_by_role("link", name="Add a server")).to_have_count(0)
    vera.page.goto(path)
    expect(vera.page.locator(".tools > li")).to_have_count(500)
    expect(vera.page.locator("main").get_by_role("button")).to_have_count(0)
    expect(vera.page.locator("main form")).to_have_count(0)
    for word in ("Edit", "Remove…"):
        expect(vera.page.get_by_role("link", name=word)).to_have_count(0)
    # Asked for all the same, outside of the page so that its console stays clean.
    for refused in ("/servers/new", f"{path}/edit", f"{path}/remove", "/agents/new"):
        answer = vera.context.request.get(refused)
        assert answer.status == 403, refused
        assert "admin" in answer.text()
