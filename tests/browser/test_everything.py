"""Servers that nobody here wrote, in a real browser: added through the page, tried, and worked with by people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from runs.mcp_client import HttpBinding
from tests.browser.admin import add_agent, add_server, look_at_it, write_agent
from tests.browser.product import PATIENCE, Person, Product
from tests.npm_servers.conftest import everything_over_http  # noqa: F401  (a fixture)
from tests.requirements import node_path, npm_script

pytestmark = [pytest.mark.browser, pytest.mark.node]

People = Callable[..., Person]

ADDRESS = "https://login.bank.example/consent?id=7"
TOOLS = "15 tools"
"""What server-everything lists to a client that can be asked by form and by URL."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one folder that the filesystem server may touch."""
    return tmp_path_factory.mktemp("allowed")


@pytest.fixture(scope="module")
def product(browser: Browser, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation whose host allows the two programs from npm."""
    programs = {
        "everything": [npm_script("@modelcontextprotocol/server-everything"), "stdio"],
        "filesystem": [npm_script("@modelcontextprotocol/server-filesystem"), str(folder)],
    }
    entries = {name: {"command": node_path(), "args": args} for name, args in programs.items()}
    running = Product(tmp_path_factory.mktemp("product"), M3_STDIO_SERVERS=json.dumps(entries))
    running.start()
    yield running
    if running.process is not None:
        running.stop()


@pytest.fixture(scope="module")
def pages(
    browser: Browser,
    product: Product,
    folder: Path,
    everything_over_http: HttpBinding,  # noqa: F811
) -> dict[str, str]:
    """ada adds the servers and an agent that works with them; {server: path of its page}."""
    ada = Person(browser, product, "ada")
    added = {}
    for name, kind, address, trusted in (
        ("everything", "entry", "everything", True),
        ("web", "url", everything_over_http.url, False),
        ("files", "entry", "filesystem", True),
    ):
        added[name] = add_server(ada, name, kind, address, trusted=trusted)
        look_at_it(ada, "Reachable")
    add_agent(ada, "Clerk", ["everything", "web", "files"], playbook(folder))
    assert ada.errors == []
    ada.close()
    return added


def playbook(folder: Path) -> dict[str, Any]:
    """What the agent does for the messages "form", "page" and "copy"; it ends with what the server said."""
    visit = {"url": ADDRESS, "message": "Connect your bank"}
    source, target = str(folder / "in.txt"), str(folder / "out.txt")

    def one_call(target: str, args: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"call": target, "args": args, "as": "r"}, {"finish": "{{ r.result }}"}]

    return {
        "cases": [
            {"when": "form", "steps": one_call("everything:trigger-elicitation-request", {})},
            {"when": "page", "steps": one_call("web:trigger-url-elicitation", visit)},
            {
                "when": "copy",
                "steps": [
                    {"call": "files:read_text_file", "args": {"path": source}, "as": "r"},
                    {
                        "call": "files:write_file",
                        "args": {"path": target, "content": "Copy: {{ r.result.content }}"},
                        "as": "w",
                    },
                    {"finish": "The write is {{ w.status }}."},
                ],
            },
        ],
        "steps": [{"finish": "Nothing to do."}],
    }


def risk_of(page: Page, tool: str) -> Locator:
    row = page.locator("li.row").filter(has=page.locator("b.mono", has_text=re.compile(f"^{tool}$")))
    return row.locator(".end .tag")


def raw_answer(page: Page) -> Any:
    """The answer as server-everything printed it at the end of its result, read from the run's page."""
    body = page.locator(".body").filter(has_text="Raw result:").last
    expect(body).to_be_visible(timeout=PATIENCE)
    return json.loads(body.inner_text().partition("Raw result: ")[2])


# --- the admin --------------------------------------------------------------------------------------------


def test_a_program_and_a_url_are_added_looked_at_and_their_tools_shown_with_risk(
    person: People, pages: dict[str, str]
) -> None:
    alice = person("alice")
    page = alice.page
    page.goto(pages["everything"])
    expect(page.locator("#tools-title")).to_have_text(TOOLS)
    expect(page.locator("#looked-at")).to_contain_text("calls itself “Everything Reference Server”")
    expect(risk_of(page, "echo")).to_have_text("Read")
    expect(risk_of(page, "trigger-elicitation-request")).to_have_text("Write")

    page.goto(pages["files"])
    expect(risk_of(page, "read_text_file")).to_have_text("Read")
    expect(risk_of(page, "create_directory")).to_have_text("Write")
    expect(risk_of(page, "write_file")).to_have_text("Destroy")

    page.goto(pages["web"])
    expect(page.locator("#tools-title")).to_have_text(TOOLS)
    expect(risk_of(page, "echo")).to_have_text("Write")
    expect(page.locator("main")).to_contain_text("The server is not trusted")
    look_at_it(alice, "Reachable")

    page.goto("/servers")
    for name in pages:
        expect(page.locator("li.row", has_text=name).filter(has_text="Reachable")).to_be_visible()


def test_a_wrong_playbook_is_refused_with_its_places_kept_and_saved_once_it_is_right(
    person: People, pages: dict[str, str]
) -> None:
    ada = person("ada")
    page = ada.page
    wrong = '{"steps": [{"call": "everything:ecko", "args": {}},\n {"call": "files:write_file", "args": {}}]}'
    write_agent(ada, "Speller", ["everything"], wrong)
    summary = page.locator(".error-summary")
    expect(summary).to_be_focused()
    expect(summary).to_contain_text("steps[0].call: the server everything has no tool ecko.")
    expect(summary).to_contain_text("steps[1].call: the agent lacks the server files.")
    box = page.get_by_label("Playbook", exact=True)
    expect(box).to_have_value(wrong)
    expect(page.get_by_label("everything", exact=True)).to_be_checked()

    box.fill('{"steps": [{"jump": "moon"}]}')
    page.get_by_role("button", name="Save agent").click()
    expect(summary).to_contain_text("steps[0]")
    expect(box).to_have_value('{"steps": [{"jump": "moon"}]}')

    box.fill(
        '{"steps": [{"call": "everything:echo", "args": {"message": "hi"}, "as": "e"}, {"finish": "{{ e.result }}"}]}'
    )
    page.get_by_role("button", name="Save agent").click()
    expect(page.locator(".messages")).to_contain_text("Speller is saved.")
    alice = person("alice")
    run = alice.start_run("Speller", "go", mode="approval")
    alice.expect_end(run, "Completed", "Echo: hi")


# --- server-everything asks -------------------------------------------------------------------------------


def test_every_field_of_its_form_is_shown_checked_and_sent(person: People, pages: dict[str, str]) -> None:
    alice = person("alice")
    run = alice.start_run("Clerk", "form", mode="autonomous")
    alice.open_card_of(run, "elicitation")
    card = alice.page.locator("#round-card")
    expect(card).to_contain_text("Please provide inputs for the following fields:")
    group = card.get_by_role("group")
    choice = card.get_by_role("radiogroup")

    def box(label: str) -> Locator:
        return card.get_by_label(re.compile(f"^{re.escape(label)}( \\(optional\\))?\\s*$"))

    expect(card).to_contain_text("Your full, legal name")
    expect(choice.filter(has_text="Boolean").get_by_label("No answer")).to_be_checked()
    expect(box("String with default")).to_have_value("It was a dark and stormy night.")
    expect(box("Integer")).to_have_value("42")
    expect(box("Number in range 1-1000")).to_have_value("3.14")
    expect(choice.filter(has_text="Untitled Single").get_by_label("Monica")).to_be_checked()
    expect(group.filter(has_text="Untitled Multiple").get_by_label("Guitar")).to_be_checked()
    expect(choice.filter(has_text="Titled Single").get_by_label("Superman")).to_be_checked()
    expect(group.filter(has_text="Titled Multiple").get_by_label("Tuna")).to_be_checked()
    expect(choice.filter(has_text="Legacy").get_by_label("Cats")).to_be_checked()

    box("String with email format").fill("not an address")
    box("String with uri format").fill("https://ada.example/~ada")
    box("String with date format").fill("1815-12-10")
    box("Integer").fill("101")
    box("Number in range 1-1000").fill("many")
    for name in ("Piano", "Violin", "Drums"):
        card.get_by_label(name).check()
    choice.filter(has_text="Boolean").get_by_label("Yes").check()
    card.get_by_role("button", name="Accept").click()

    summary = alice.page.locator(".error-summary")
    expect(summary.get_by_role("link")).to_have_count(5, timeout=PATIENCE)
    for label in ("String", "String with email format", "Integer", "Number in range", "Untitled Multiple"):
        expect(summary).to_contain_text(label)
    expect(box("Integer")).to_have_value("101")
    expect(box("Number in range 1-1000")).to_have_value("many")
    expect(box("String with date format")).to_have_value("1815-12-10")
    expect(card.get_by_label("Drums")).to_be_checked()
    summary.get_by_role("link", name=re.compile("email")).click()
    expect(box("String with email format")).to_be_focused()

    box("String with email format").fill("ada@example.org")
    box("String").fill("Ada Lovelace")
    box("Integer").fill("7")
    box("Number in range 1-1000").fill("2.75")
    for name in ("Guitar", "Violin", "Tuna"):
        card.get_by_label(name).uncheck()
    for name in ("Salmon", "Trout", "Joey", "Green Lantern", "Fish"):
        card.get_by_label(name, exact=True).check()
    box("String with default").fill("")
    alice.press("0:accept")
    alice.expect_end(run, "Completed", "User provided the requested information!")
    given = alice.page.locator(".pause")
    expect(given.get_by_text("Titled Single Select Enum (titledSingleSelectEnum)")).to_be_visible()
    assert raw_answer(alice.page) == {
        "action": "accept",
        "content": {
            "name": "Ada Lovelace",
            "check": True,
            "email": "ada@example.org",
            "homepage": "https://ada.example/~ada",
            "birthdate": "1815-12-10",
            "integer": 7,
            "number": 2.75,
            "untitledSingleSelectEnum": "Joey",
            "untitledMultipleSelectEnum": ["Piano", "Drums"],
            "titledSingleSelectEnum": "hero-2",
            "titledMultipleSelectEnum": ["fish-2", "fish-3"],
            "legacyTitledEnum": "pet-4",
        },
    }


@pytest.mark.parametrize(
    ("answer", "words"),
    [("0:decline", "User declined to provide"), ("0:cancel", "User cancelled the elicitation")],
)
def test_a_form_can_be_declined_or_put_off_without_filling_it(
    person: People, pages: dict[str, str], answer: str, words: str
) -> None:
    alice = person("alice")
    run = alice.start_run("Clerk", "form", mode="autonomous")
    alice.open_card_of(run, "elicitation")
    alice.press(answer)
    alice.expect_end(run, "Completed", words)


def test_a_page_to_open_shows_its_host_and_asks_for_consent(person: People, pages: dict[str, str]) -> None:
    alice = person("alice")
    run = alice.start_run("Clerk", "page", mode="autonomous")
    alice.open_card_of(run, "elicitation")
    card = alice.page.locator("#round-card")
    expect(card).to_contain_text("Connect your bank")
    expect(card.locator(".url-host")).to_have_text("login.bank.example")
    expect(card.locator(".url-text")).to_have_text(ADDRESS)
    link = card.get_by_role("link", name="Open login.bank.example in a new tab")
    expect(link).to_have_attribute("href", ADDRESS)
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(card.get_by_role("button", name="I agree")).to_be_visible()
    alice.press("0:accept")
    alice.expect_end(run, "Completed", "User completed the URL elicitation flow")
    assert raw_answer(alice.page) == {"action": "accept"}

    run = alice.start_run("Clerk", "page", mode="autonomous")
    alice.open_card_of(run, "elicitation")
    alice.press("0:decline")
    alice.expect_end(run, "Completed", "User declined to open the URL")


# --- server-filesystem writes -----------------------------------------------------------------------------


def test_a_write_asks_with_path_and_content_and_the_file_is_there_only_once_it_is_allowed(
    person: People, pages: dict[str, str], folder: Path
) -> None:
    (folder / "in.txt").write_text("<b>Grüße</b>")
    alice = person("alice")
    card = alice.page.locator("#round-card")
    run = alice.start_run("Clerk", "copy", mode="approval")
    alice.open_card_of(run, "approval")
    expect(card).to_contain_text("files:write_file")
    expect(card.locator(".tag").first).to_have_text("Destroy")
    expect(card.get_by_role("row", name="path")).to_contain_text(str(folder / "out.txt"))
    expect(card.get_by_role("row", name="content")).to_contain_text("Copy: <b>Grüße</b>")
    alice.press("deny")
    alice.expect_end(run, "Completed", "The write is denied.")
    assert not (folder / "out.txt").exists()

    run = alice.start_run("Clerk", "copy", mode="approval")
    alice.open_card_of(run, "approval")
    assert not (folder / "out.txt").exists()
    alice.press("allow")
    alice.expect_end(run, "Completed", "The write is done.")
    assert (folder / "out.txt").read_text() == "Copy: <b>Grüße</b>"
