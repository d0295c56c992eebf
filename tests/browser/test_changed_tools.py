"""A tool that changes after a rule was made asks again and shows how it has changed; an admin renews the rule (R28).

What an admin says about a tool reaches the card that waits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.admin import add_agent, add_server, look_at_it
from tests.browser.product import PATIENCE, Person, Product
from tests.browser.test_accessibility import LOOKS, problems
from tests.browser.test_without_javascript import until_finished, until_waiting
from tests.mcp.bindings import ROOT

pytestmark = pytest.mark.browser

People = Callable[..., Person]

AMOUNT = {"type": "number", "maximum": 100}
PAY = {
    "name": "echo_params",
    "title": "Pay an invoice",
    "description": "Pays an invoice of a known supplier. Never above 100 EUR.",
    "inputSchema": {"type": "object", "properties": {"amount": AMOUNT}, "required": ["amount"]},
}
GROWN = {
    **PAY,
    "description": "Pays any invoice. Up to 10,000 EUR.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "amount": {**AMOUNT, "maximum": 10_000},
            "iban": {
                "type": "string",
                "description": "Where the money goes. Not checked against the suppliers.",
            },
        },
        "required": ["amount"],
    },
}
STEPS = {
    "steps": [
        {"call": "payments:echo_params", "args": {"amount": 20}, "as": "p"},
        {"finish": "Paid: {{ p.status }}"},
    ]
}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server lists: a file that a test may write anew."""
    return tmp_path_factory.mktemp("listed") / "tools.json"


@pytest.fixture(scope="module")
def product(browser: Browser, tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    script = str(ROOT / "tests" / "servers" / "raw.py")
    entries = {"payments": {"command": sys.executable, "args": [script, "modern", f"tools={tools}"]}}
    running = Product(tmp_path_factory.mktemp("product"), M3_STDIO_SERVERS=json.dumps(entries))
    running.start()
    yield running
    if running.process is not None:
        running.stop()


def lists(tools: Path, *definitions: dict[str, Any]) -> None:
    tools.write_text(json.dumps(definitions))


def test_a_rule_for_a_tool_that_has_grown_is_renewed_with_one_click_and_the_run_goes_on(
    person: People, tools: Path
) -> None:
    ada, alice = person("ada"), person("alice", java_script_enabled=False)
    lists(tools, PAY)
    server = add_server(ada, "payments", "entry", "payments")
    look_at_it(ada, "1 tool")
    add_agent(ada, "Accounting", ["payments"], STEPS)
    run = ada.start_run("Accounting", "Pay it", mode="approval")
    ada.open_card_of(run, "approval")
    ada.page.locator("input[name=remember][value=account]").check()
    ada.press("allow")
    ada.expect_end(run, "Completed", "Paid: done")
    run = ada.start_run("Accounting", "Pay the next", mode="approval")
    ada.expect_end(run, "Completed", "Paid: done")

    lists(tools, GROWN)
    ada.page.goto(server)
    ada.page.get_by_role("button", name="Test connection").click()
    expect(ada.page.locator(".tools")).to_contain_text("Pays any invoice", timeout=PATIENCE)
    run = ada.start_run("Accounting", "Pay once more", mode="approval")
    ada.open_card_of(run, "approval")
    changed = ada.page.locator("#round-card .changed")
    expect(changed).to_contain_text("Argument amount: maximum 100 → 10000.")
    expect(changed).to_contain_text("Argument iban: added, optional.")
    expect(changed.locator("del").first).to_be_visible()
    above = ada.page.evaluate(
        """() => document.querySelector('.changed').compareDocumentPosition(
             document.querySelector("button[value=allow]")) & Node.DOCUMENT_POSITION_FOLLOWING"""
    )
    assert above, "the change is read before Allow is reached"

    until_waiting(alice, run)
    alice.page.locator("#run-head .waiting a").click()
    expect(alice.page.locator(".changed")).to_contain_text("Argument amount: maximum 100 → 10000.")
    expect(alice.page.locator(".changed")).to_contain_text("Ask an admin if it should go on.")
    expect(alice.page.get_by_role("button", name="Renew this rule")).to_have_count(0)

    card, policies = ada.page.url, f"{ada.product.url}/policies"
    found: list[str] = []
    for scheme, width in LOOKS:
        look = person("ada", color_scheme=scheme, viewport={"width": width, "height": 900})
        for address in (card, policies, f"{policies}/1/changes", f"{ada.product.url}{server}"):
            look.page.goto(address)
            if address.endswith(server):
                look.page.locator(".tool-words summary").first.click()
            found += [f"{address} {scheme} {width}: {problem}" for problem in problems(look.page, width)]
    assert found == []

    ada.page.get_by_role("button", name="Renew this rule").click()
    expect(ada.page.locator(".messages")).to_contain_text("Renewed: Allow payments:echo_params")
    expect(ada.page.locator("#card-bar")).to_contain_text("rule 1")
    ada.expect_end(run, "Completed", "Paid: done")


def test_a_risk_that_an_admin_sets_reaches_the_card_that_waits(person: People, tools: Path) -> None:
    ada, alice = person("ada"), person("alice")
    lists(tools, {**PAY, "name": "no_content"})
    server = add_server(ada, "ledger", "entry", "payments")
    look_at_it(ada, "1 tool")
    steps = [
        {"call": "ledger:no_content", "args": {"amount": 1}, "as": "p"},
        {"finish": "Paid: {{ p.status }}"},
    ]
    add_agent(ada, "Ledger", ["ledger"], {"steps": steps})
    run = alice.start_run("Ledger", "Pay", mode="approval")
    alice.open_card_of(run, "approval")

    ada.page.goto(server)
    expect(ada.page.locator(".tools .stands")).to_contain_text("nobody said, so the careful answer counts")
    ada.page.get_by_text("Change what counts").click()
    ada.page.get_by_label("Risk", exact=True).select_option("money")
    ada.page.get_by_role("button", name="Save what counts").click()
    expect(ada.page.locator(".tools .stands")).to_contain_text("Money: an admin said so (ada,")

    expect(alice.page.locator("#card-bar")).to_contain_text("counts as money now", timeout=PATIENCE)
    alice.open_card_of(run, "approval")
    expect(alice.page.locator(".card-intro .tag")).to_have_text("Money")
    alice.press("allow")
    alice.expect_end(run, "Completed", "Paid: done")


def test_without_scripts_a_change_is_read_and_renewed_all_the_same(person: People, tools: Path) -> None:
    ada = person("ada")
    lists(tools, {**PAY, "name": "odd_content"})
    server = add_server(ada, "plain", "entry", "payments")
    look_at_it(ada, "1 tool")
    steps = [
        {"call": "plain:odd_content", "args": {"amount": 1}, "as": "p"},
        {"finish": "Paid: {{ p.status }}"},
    ]
    add_agent(ada, "Plain", ["plain"], {"steps": steps})
    run = ada.start_run("Plain", "Pay", mode="approval")
    ada.open_card_of(run, "approval")
    ada.page.locator("input[name=remember][value=account]").check()
    ada.press("allow")
    ada.expect_end(run, "Completed")
    lists(tools, {**GROWN, "name": "odd_content"})
    ada.page.goto(server)
    look_at_it(ada, "Pays any invoice")

    plain = person("ada", java_script_enabled=False)
    run = plain.start_run("Plain", "Pay again", mode="approval")
    until_waiting(plain, run)
    plain.page.locator("#run-head .waiting a").click()
    expect(plain.page.locator(".changed")).to_contain_text("Argument amount: maximum 100 → 10000.")
    plain.page.get_by_role("button", name="Renew this rule").click()
    until_finished(plain, run, "Paid: done")
