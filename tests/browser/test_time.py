"""Deadlines: how much time is left, more of it, and what is said when it has run out (R31, R32)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.admin import add_agent
from tests.browser.product import PATIENCE, Person, Product
from tests.browser.tabs import decisions_sent, open_round, status_of

pytestmark = pytest.mark.browser

People = Callable[..., Person]

PLAYBOOK: dict[str, Any] = {
    "steps": [
        {
            "call": "desk:send_email",
            "args": {"to": "piet@hafen.example", "subject": "Hello", "body": "Hello Piet"},
            "as": "mail",
        },
        {"finish": "The mail is {{ mail.status }}."},
    ]
}
HASTY, PATIENT = ("Hasty", "12s"), ("Patient", "10m")
SWEEP = 1.0
"""Seconds between two looks for what is overdue."""


@pytest.fixture(scope="module")
def product(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation in which ada has given two agents little time, through their editor."""
    running = Product(tmp_path_factory.mktemp("product"), M3_SWEEP_SECONDS=str(SWEEP))
    running.start()
    ada = Person(browser, running, "ada")
    for name, time in (HASTY, PATIENT):
        add_agent(ada, name, ["desk"], PLAYBOOK)
        ada.page.get_by_role("link", name="Edit").click()
        ada.page.get_by_label("Time to answer").fill(time)
        ada.page.get_by_role("button", name="Save agent").click()
        expect(ada.page.locator(".messages")).to_contain_text(f"{name} is saved.")
    assert ada.errors == []
    ada.close()
    yield running
    if running.process is not None:
        running.stop()


def wait_until_past(page: Page, deadline: str) -> None:
    """Until the time of `deadline` is over for the page and for one sweep of the server."""
    page.wait_for_function(
        "([at, more]) => Date.now() > Date.parse(at) + more", arg=[deadline, 2000 * SWEEP], timeout=PATIENCE
    )


def deadline_of(page: Page) -> str:
    deadline = page.locator("#round-card").get_attribute("data-deadline")
    assert deadline
    return deadline


def test_more_time_keeps_what_was_typed_and_the_card_outlives_its_first_deadline(person: People) -> None:
    alice = person("alice")
    run = alice.start_run(HASTY[0], "go", mode="approval")
    alice.open_card_of(run, "approval")
    page, round_id = alice.page, open_round(alice)
    first = deadline_of(page)
    left = page.locator(".card-deadline time[data-show=left]")
    expect(left).to_have_text("under 1 min left")
    expect(left).to_have_class("due")
    expect(page.locator(f"#rows [data-round='{round_id}'] time")).to_have_text("under 1 min left")
    words = page.get_by_label("Tell the agent")
    words.fill("Let me ask Piet.")
    page.get_by_role("button", name="Give 15 more minutes").click()
    expect(left).to_have_text("15 min left")
    expect(words).to_have_value("Let me ask Piet.")
    expect(page.locator(f"#rows [data-round='{round_id}'] time")).to_have_text("15 min left")
    wait_until_past(page, first)
    assert status_of(alice, round_id) == "waiting"
    expect(page.locator("#card-bar")).to_be_empty()
    alice.press("allow")
    alice.expect_end(run, "Completed", "The mail is done.")


def test_when_time_runs_out_the_open_card_closes_late_answers_are_refused_and_the_run_says_so(
    person: People,
) -> None:
    alice, bob = person("alice"), person("bob")
    run = alice.start_run(HASTY[0], "go", mode="approval")
    alice.open_card_of(run, "approval")
    page, round_id, sent = alice.page, open_round(alice), decisions_sent(alice.page)
    words = page.get_by_label("Tell the agent")
    words.fill("Just a mom")
    # An answer that is made up in time and arrives too late.
    page.evaluate(
        """() => { const form = document.querySelector('form.decision');
                   const body = new FormData(form); body.set('decision', 'allow');
                   const request = {method: 'POST', body, headers: {'HX-Request': 'true'}};
                   window.late = () => fetch(form.action, request)
                     .then(async (r) => ({status: r.status, text: await r.text()})); }"""
    )
    bar = page.locator("#card-bar")
    expect(bar).to_contain_text("Expired", timeout=PATIENCE)
    expect(bar).to_contain_text("Nobody answered before the deadline; nothing was done.")
    expect(words).to_have_value("Just a mom")
    expect(words).to_be_focused()
    allow = page.locator("button[value=allow]")
    expect(allow).to_have_attribute("aria-disabled", "true")
    allow.click(force=True)
    page.locator("#card-title").press("a")
    assert sent == []
    expect(page.locator(f"#rows [data-round='{round_id}']")).to_have_count(0)

    late = page.evaluate("() => window.late()")
    assert late["status"] == 409
    assert "The deadline of this request has passed." in late["text"]
    bob.page.goto(f"/rounds/{round_id}/")
    expect(bob.page.locator("#round-card")).to_contain_text("Nobody answered before the deadline")
    expect(bob.page.locator("#round-card button[value=allow]")).to_have_count(0)
    bob.expect_end(run, "Timed out")
    expect(bob.page.locator("main")).not_to_contain_text("The mail is done.")


def test_the_time_that_is_left_is_said_twice_and_no_more(person: People) -> None:
    alice = person("alice")
    run = alice.start_run(PATIENT[0], "go", mode="approval")
    alice.page.clock.install()
    alice.open_card_of(run, "approval")
    page = alice.page
    page.evaluate(
        """() => { window.said = []; const live = document.getElementById('live');
                   const note = () => { if (/ left /.test(live.textContent)) said.push(live.textContent); };
                   new MutationObserver(note).observe(live, {childList: true}); }"""
    )
    expect(page.locator(".card-deadline time[data-show=left]")).to_have_text("9 min left")
    for _ in range(11):
        page.clock.fast_forward("01:00")
    expect(page.locator(".card-deadline time[data-show=left]")).to_have_text("time is up")
    said = page.evaluate("said")
    assert said == ["5 minutes left for this request.", "1 minute left for this request."]
    alice.press("deny")
