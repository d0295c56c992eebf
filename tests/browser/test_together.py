"""Several people at several browsers: they stay in step, and exactly one of two decisions counts."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.product import PATIENCE, Person

pytestmark = pytest.mark.browser

People = Callable[..., Person]


def test_the_loser_of_a_race_sees_who_decided_and_nothing_is_sent_twice(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    run = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    alice.open_card_of(run, "approval")
    bob.open_card_of(run, "approval")
    # bob's click is on its way: his request is made up before alice decides and arrives after.
    form = bob.page.evaluate(
        """() => { const form = document.querySelector('form.decision');
                   const body = new FormData(form); body.set('decision', 'deny');
                   const request = {method: 'POST', body, headers: {'HX-Request': 'true'}};
                   window.racer = () => fetch(form.action, request)
                     .then(async (r) => ({status: r.status, text: await r.text()})); return form.action; }"""
    )
    assert "/decide" in form
    alice.press("allow")
    late = bob.page.evaluate("() => window.racer()")
    assert late["status"] == 409
    assert "alice" in late["text"]
    bar = bob.page.locator("#card-bar")
    expect(bar).to_contain_text("Allowed", timeout=PATIENCE)
    expect(bar).to_contain_text("alice")
    alice.expect_end(run, "Completed", "Welcome mail: done.")


def test_a_card_that_is_decided_elsewhere_closes_without_losing_what_was_typed(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    run = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    alice.open_card_of(run, "approval")
    bob.open_card_of(run, "approval")
    words = bob.page.get_by_label("Tell the agent")
    words.fill("I was still writing")
    alice.press("deny")
    expect(bob.page.locator("#card-bar")).to_contain_text("alice", timeout=PATIENCE)
    expect(words).to_have_value("I was still writing")
    expect(words).to_be_focused()
    expect(bob.page.locator("button[value=allow]")).to_have_attribute("aria-disabled", "true")
    assert not bob.errors


def test_counts_and_title_follow_in_every_open_tab(person: People) -> None:
    alice, vera = person("alice"), person("vera")
    vera.page.goto("/")
    expect(vera.page.locator("#live-state")).to_contain_text("Live")
    before = int(vera.page.locator("[data-pending-count]").inner_text() or 0)
    run = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    expect(vera.page.locator("[data-pending-count]")).to_have_text(str(before + 1), timeout=PATIENCE)
    expect(vera.page).to_have_title(f"({before + 1}) Inbox · M3 Web")
    alice.open_card_of(run, "approval")
    alice.press("deny")
    expect(vera.page.locator("[data-pending-count]")).to_have_text(
        str(before) if before else "", timeout=PATIENCE
    )


def test_a_viewer_sees_the_card_and_cannot_decide(person: People) -> None:
    alice, vera = person("alice"), person("vera")
    run = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    alice.open_card_of(run, "approval")
    vera.page.goto(alice.page.url)
    expect(vera.page.locator("#round-card")).to_contain_text("Deciding needs the role operator.")
    expect(vera.page.locator("#round-card button[value=allow]")).to_have_count(0)
    alice.press("deny")


def test_what_is_remembered_is_listed_used_and_stops_when_revoked(person: People) -> None:
    ada = person("ada")
    message = "Send the welcome mail to Hafen Coffee"
    run = ada.start_run("Customer success", message, user="cust_browser")
    ada.open_card_of(run, "approval")
    choice = ada.page.get_by_role("radio", name="Always allow for cust_browser, until somebody revokes it")
    expect(ada.page.locator("label", has=choice)).to_contain_text(
        "Allow desk:send_email in every run for the user cust_browser"
    )
    choice.check()
    ada.press("allow")
    expect(ada.page.locator("#receipts")).to_contain_text("Remembered", timeout=PATIENCE)
    second = ada.start_run("Customer success", message, user="cust_browser")
    ada.expect_end(second, "Completed", "Welcome mail: done.")
    other = ada.start_run("Customer success", message, user="cust_other")
    ada.open_card_of(other, "approval")
    ada.press("deny")
    ada.page.goto("/policies")
    line = ada.page.locator("li", has_text="cust_browser")
    expect(line).to_contain_text("desk:send_email")
    line.get_by_role("link", name=re.compile("^Revoke")).click()
    ada.page.get_by_role("button", name="Revoke").click()
    expect(ada.page.get_by_text("Revoked: Allow desk:send_email")).to_be_visible(timeout=PATIENCE)
    third = ada.start_run("Customer success", message, user="cust_browser")
    ada.open_card_of(third, "approval")
    ada.press("deny")


def test_switching_to_autonomous_closes_the_pending_approval_and_the_run_goes_on(person: People) -> None:
    alice = person("alice")
    run = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    expect(alice.page.locator("#run-head .waiting a")).to_be_visible(timeout=PATIENCE)
    alice.page.get_by_label("Permission mode").select_option("autonomous")
    alice.page.get_by_role("button", name="Switch mode").click()
    alice.expect_end(run, "Completed", "Welcome mail: done.")


def test_a_cancelled_run_closes_its_cards_everywhere(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    run = alice.start_run("Logistics", "Book the lamp")
    bob.open_card_of(run, "elicitation")
    alice.page.locator("summary", has_text="Cancel this run").click()
    alice.page.get_by_role("button", name=f"Cancel run {run}").click()
    expect(alice.page.locator("#run-head")).to_contain_text("Cancelled", timeout=PATIENCE)
    expect(bob.page.locator("#card-bar")).to_contain_text("ancelled", timeout=PATIENCE)


def test_an_expired_session_says_so_and_keeps_what_was_typed(person: People) -> None:
    alice = person("alice")
    run = alice.start_run("Logistics", "Book the lamp")
    alice.open_card_of(run, "elicitation")
    alice.page.get_by_label("Street").fill("1 Main Street")
    alice.context.clear_cookies(name="sessionid")
    alice.page.locator("button[value='0:accept']").click()
    expect(alice.page.locator("#banner-signed-out")).to_be_visible(timeout=PATIENCE)
    expect(alice.page.get_by_label("Street")).to_have_value("1 Main Street")
    alice.errors.clear()


def test_a_page_whose_person_signed_out_in_another_tab_says_so_by_itself_and_does_not_connect_again(
    person: People,
) -> None:
    alice = person("alice")
    alice.page.add_init_script(
        """window.opened = 0;
           window.WebSocket = class extends WebSocket { constructor(url) {
             super(url);
             window.opened++;
             this.addEventListener('close', (e) => { document.documentElement.dataset.closed = e.code; });
           } };"""
    )
    alice.page.goto("/")
    expect(alice.page.locator("#live-state")).to_contain_text("Live")
    other = alice.context.new_page()
    other.goto("/")
    other.locator("summary", has_text="alice").click()
    other.get_by_role("button", name="Sign out").click()
    other.wait_for_url("**/login*")

    expect(alice.page.locator("html")).to_have_attribute("data-closed", "4401", timeout=PATIENCE)
    expect(alice.page.locator("#banner-signed-out")).to_be_visible(timeout=PATIENCE)
    alice.page.evaluate("window.dispatchEvent(new Event('online'))")  # as a network that comes back does

    assert alice.page.evaluate("window.opened") == 1
    alice.errors.clear()


def test_somebody_elses_account_is_not_there(person: People) -> None:
    alice = person("alice")
    for path in ("/rounds/0123456789abcdef/", "/runs/999999"):
        response = alice.page.goto(path)
        assert response is not None
        assert response.status == 404
        expect(alice.page.locator("main")).to_contain_text("nothing here")
    alice.errors.clear()
