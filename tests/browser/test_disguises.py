"""Texts and addresses that pretend to be others are seen for what they are (R13, R41, R42)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.admin import add_agent, add_server, look_at_it
from tests.browser.product import Person, Product
from tests.mcp.bindings import ROOT

pytestmark = pytest.mark.browser

People = Callable[..., Person]

DISGUISED = {
    "to": "piet@ha\u200bfen.example",
    "subject": "Invoice \u202efdp.exe",
    "body": "Hello\nPiet\u00ad",
}
PUNYCODE = "https://xn--pple-43d.example/login?next=%2F"
USERINFO = "https://bank.example@collector.example:8443/login"
MIXED = "https://p\u0430ypal.example/pay"
PLAIN = "http://bank.example/login"
SCRIPT = "javascript:alert(document.cookie)//bank.example"
ADDRESSES = {"punycode": PUNYCODE, "userinfo": USERINFO, "mixed": MIXED, "plain": PLAIN, "script": SCRIPT}


@pytest.fixture(scope="module")
def product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation with an agent that sends disguised mail, and one whose server sends people anywhere."""
    listing = tmp_path_factory.mktemp("listed") / "tools.json"
    listing.write_text(json.dumps([{"name": "asks", "inputSchema": {"type": "object"}}]))
    script = str(ROOT / "tests" / "servers" / "raw.py")
    entry = {"command": sys.executable, "args": [script, "legacy", f"tools={listing}"]}
    running = Product(tmp_path_factory.mktemp("product"), M3_STDIO_SERVERS=json.dumps({"anywhere": entry}))
    running.start()
    ada = Person(browser, running, "ada")
    add_server(ada, "anywhere", "entry", "anywhere")
    look_at_it(ada, "Reachable")
    mail = {"call": "desk:send_email", "args": DISGUISED, "as": "mail"}
    add_agent(ada, "Disguised", ["desk"], {"steps": [mail, {"finish": "The mail is {{ mail.status }}."}]})
    cases = [
        {
            "when": word,
            "steps": [visit(url), {"finish": "The visit is {{ v.status }}. {{ v.result.error.message }}"}],
        }
        for word, url in ADDRESSES.items()
    ]
    add_agent(ada, "Guide", ["anywhere"], {"cases": cases, "steps": [{"finish": "Where to?"}]})
    assert ada.errors == []
    ada.close()
    yield running
    if running.process is not None:
        running.stop()


def visit(url: str) -> dict[str, Any]:
    params = {"mode": "url", "message": "Please log in", "url": url, "elicitationId": "e-1"}
    return {"call": "anywhere:asks", "args": {"params": params}, "as": "v"}


def test_hidden_characters_of_a_call_are_written_out_with_a_warning_and_sent_as_they_are(
    person: People, product: Product
) -> None:
    alice = person("alice")
    run = alice.start_run("Disguised", "go", mode="approval")
    alice.open_card_of(run, "approval")
    card = alice.page.locator("#round-card")
    warning = card.locator(".notice.warn").first
    expect(warning).to_contain_text("Hidden characters in to, subject, body.")
    expect(card.get_by_role("row", name="subject")).to_contain_text("Invoice ⟨U+202E⟩fdp.exe")
    expect(card.get_by_role("row", name="to", exact=False).last).to_contain_text("piet@ha⟨U+200B⟩fen.example")
    expect(card.get_by_role("row", name="body")).to_contain_text("Piet⟨U+00AD⟩")
    expect(card.locator("#card-title")).to_contain_text("⟨U+200B⟩")
    assert raw_hidden(alice) == []
    alice.press("allow")
    alice.expect_end(run, "Completed", "The mail is done.")
    assert raw_hidden(alice) == []


def raw_hidden(person: Person) -> list[str]:
    """The hidden characters that the page's own text holds; there must be none, in the list neither."""
    return re.findall("[\u200b\u202e\u00ad]", person.page.locator("body").inner_text())


@pytest.mark.parametrize(
    ("word", "host", "warnings"),
    [
        ("punycode", "xn--pple-43d.example", ["technical name is xn--pple-43d.example", "mixes letters"]),
        ("userinfo", "collector.example", ["a name or password before the host", "unusual port 8443"]),
        ("mixed", MIXED.split("/")[2], ["mixes letters of different alphabets", "technical name is xn--"]),
    ],
)
def test_a_disguised_address_is_shown_whole_with_its_true_host_and_what_is_odd_about_it(
    person: People, word: str, host: str, warnings: list[str]
) -> None:
    alice = person("alice")
    hosts: set[str | None] = set()
    alice.context.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    run = alice.start_run("Guide", word, mode="autonomous")
    alice.open_card_of(run, "elicitation")
    card = alice.page.locator("#round-card")
    expect(card.locator(".url-text")).to_have_text(ADDRESSES[word])
    expect(card.locator(".url-host")).to_have_text(host)
    for words in warnings:
        expect(card.locator(".notice.warn", has_text=words)).to_be_visible()
    link = card.locator("[data-consent-link]")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    target = urlsplit(link.get_attribute("href") or "")
    assert target.scheme == "https"
    assert target.hostname == host.encode("idna").decode()
    expect(card).to_contain_text("it does not say that you are done there")
    alice.press("0:decline")
    alice.expect_end(run, "Completed")
    assert hosts == {"127.0.0.1"}, "somebody was asked before anybody agreed"


def test_an_address_without_encryption_is_text_with_a_warning_and_no_link(person: People) -> None:
    alice = person("alice")
    run = alice.start_run("Guide", "plain", mode="autonomous")
    alice.open_card_of(run, "elicitation")
    card = alice.page.locator("#round-card")
    expect(card.locator(".url-text")).to_have_text(PLAIN)
    expect(card.locator(".notice.warn", has_text="Only https addresses get a link")).to_be_visible()
    expect(card).to_contain_text("There is no link, because this address cannot be opened safely.")
    expect(card.locator("[data-consent-link], a[href*='bank.example']")).to_have_count(0)
    alice.press("0:decline")
    alice.expect_end(run, "Completed", "The visit is done.")


def test_an_address_that_is_a_script_is_refused_at_the_door_and_becomes_no_link(person: People) -> None:
    alice = person("alice")
    run = alice.start_run("Guide", "script", mode="autonomous")
    alice.expect_end(run, "Completed", "not a web address")
    expect(alice.page.locator("#run-head .waiting")).to_have_count(0)
    schemes = alice.page.locator("a").evaluate_all("nodes => nodes.map(node => node.protocol)")
    assert set(schemes) == {"http:"}
