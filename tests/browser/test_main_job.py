"""The main job, for every kind of pause: sign in, start a run, its card appears by itself, decide, the run goes on."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.product import PATIENCE, Person

pytestmark = pytest.mark.browser

People = Callable[..., Person]


@pytest.fixture
def desk(person: People) -> tuple[Person, Page]:
    """alice, with the inbox open in one tab and a second tab to start runs in."""
    alice = person("alice")
    alice.page.goto("/")
    expect(alice.page.locator("#live-state")).to_contain_text("Live")
    return alice, alice.context.new_page()


def start(alice: Person, tab: Page, agent: str, message: str) -> int:
    inbox, alice.page = alice.page, tab
    run = alice.start_run(agent, message)
    alice.page = inbox
    return run


def arrived(alice: Person, tab: Page, run: int, headline: str) -> None:
    """The card's row appears in the open inbox without a reload, and opens there."""
    link = tab.locator("#run-head .waiting a").first
    expect(link).to_be_visible(timeout=PATIENCE)
    round_id = (link.get_attribute("href") or "").strip("/").split("/")[1]
    row = alice.page.locator(f"#rows [data-row][data-round='{round_id}']")
    expect(row).to_contain_text(headline, timeout=PATIENCE)
    row.locator("a").click()
    expect(alice.page.locator(f"#round-card[data-round='{round_id}']")).to_contain_text(f"run {run}")
    alice.settle()


def test_an_approval_is_allowed_and_the_run_goes_on(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Customer success", "Send the welcome mail to Hafen Coffee")
    arrived(alice, tab, run, "piet@hafen.example")
    card = alice.page.locator("#round-card")
    expect(card).to_contain_text("Exactly this will be sent")
    expect(card).to_contain_text("Your silver discount is active from today.")
    expect(card).to_contain_text("Why you are asked")
    alice.press("allow")
    expect(alice.page.locator("#receipts")).to_contain_text("Allowed", timeout=PATIENCE)
    expect(tab.locator("#run-head")).to_contain_text("Completed", timeout=PATIENCE)
    expect(tab.locator("main")).to_contain_text("Welcome mail: done.")


def test_a_denial_carries_the_persons_words_to_the_agent(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Customer success", "Send the welcome mail to Hafen Coffee")
    arrived(alice, tab, run, "piet@hafen.example")
    alice.page.get_by_label("Tell the agent").fill("They left us in October.")
    alice.press("deny")
    expect(tab.locator("main")).to_contain_text(
        "Welcome mail: denied. They left us in October.", timeout=PATIENCE
    )


def test_edited_arguments_are_what_is_sent(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Customer success", "Send the welcome mail to Hafen Coffee")
    arrived(alice, tab, run, "piet@hafen.example")
    alice.page.get_by_role("link", name="Edit arguments").click()
    alice.page.get_by_role("textbox", name="Subject").fill("Good to see you again")
    alice.settle()
    alice.press("allow")
    expect(tab.locator("#run-head")).to_contain_text("Completed", timeout=PATIENCE)
    tab.locator("summary", has_text="Result").last.click()
    expect(tab.locator("main")).to_contain_text("Good to see you again")


def test_an_elicited_form_is_checked_filled_and_sent(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Logistics", "Book the lamp for order 78")
    arrived(alice, tab, run, "Where should the parcel go?")
    card = alice.page.locator("#round-card")
    card.get_by_label("Street").fill("1 Main Street")
    card.get_by_role("button", name="Accept").click()
    summary = alice.page.locator("#error-summary, .error-summary").first
    expect(summary).to_be_visible()
    expect(card.get_by_label("Street")).to_have_value("1 Main Street")
    card.get_by_label("City").fill("Pune")
    alice.press("0:accept")
    expect(tab.locator("main")).to_contain_text(
        re.compile(r"Booked\. Tracking number NW[0-9A-F]{8}"), timeout=PATIENCE
    )


def test_a_form_and_a_consent_of_one_round_are_answered_one_after_the_other(
    desk: tuple[Person, Page],
) -> None:
    alice, tab = desk
    run = start(alice, tab, "Logistics", "Please insure the parcel")
    arrived(alice, tab, run, "insurance cover")
    card = alice.page.locator("#round-card")
    card.get_by_role("textbox", name="Declared value").fill("250")
    card.locator("[data-request='0']").get_by_role("button", name="Accept").click()
    expect(card.locator("[data-request='0']")).to_contain_text("not sent yet", timeout=PATIENCE)
    consent = card.locator("[data-request='1']")
    link = consent.get_by_role("link", name=re.compile("Open "))
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    alice.press("1:accept")
    expect(tab.locator("main")).to_contain_text("Insurance: done. POL-", timeout=PATIENCE)


def test_a_refund_asks_a_form_and_then_a_consent_on_its_live_session(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Customer success", "refund the chipped tableware")
    arrived(alice, tab, run, "O-5003")
    expect(alice.page.locator("#round-card .tag").first).to_have_class(re.compile("money"))
    alice.press("allow")
    alice.open_card_of(run, "elicitation")
    card = alice.page.locator("#round-card")
    for box in card.locator("fieldset").all():
        if box.locator("input[type=radio]").count() and not box.locator("input[type=radio]:checked").count():
            box.locator("input[type=radio]").first.check()
    for field in card.locator("input[type=text]").all():
        if not field.input_value():
            field.fill("86.4")
    alice.press("0:accept")
    alice.open_card_of(run, "elicitation")
    expect(card).to_contain_text("I agree")
    alice.press("0:accept")
    expect(tab.locator("main")).to_contain_text("Refund: done.", timeout=PATIENCE)


def test_questions_are_answered_with_options_and_other_text(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Customer success", "What should we prioritize?")
    arrived(alice, tab, run, "Which customer segment")
    card = alice.page.locator("#round-card")
    card.locator("button[value=accept]").click()
    expect(alice.page.locator(".error-summary").first).to_be_visible()
    card.get_by_label("enterprise").check()
    card.get_by_label("E-mail").check()
    card.get_by_label("Other answer").last.fill("Carrier pigeon")
    alice.press("accept")
    expect(tab.locator("main")).to_contain_text(
        "enterprise first, by E-mail, Carrier pigeon", timeout=PATIENCE
    )


def test_a_plan_is_revised_approved_and_carried_out_with_a_child_run(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Operations planner", "Hand over the West region")
    arrived(alice, tab, run, "Plan in 4 steps")
    alice.page.get_by_label("What should change").fill("No shipment, please.")
    alice.press("revise")
    expect(tab.locator("#run-head .waiting a")).to_contain_text("plan", timeout=PATIENCE)
    alice.open_card_of(run, "plan")
    expect(alice.page.locator("#round-card")).to_contain_text("No shipment, please.", timeout=PATIENCE)
    expect(alice.page.locator("#round-card")).to_contain_text("no shipment yet")
    alice.press("approve")
    alice.open_card_of(run, "approval")
    alice.press("deny")
    expect(tab.locator("main")).to_contain_text("Note: denied.", timeout=PATIENCE)


def test_the_weekly_update_and_the_reply_that_breaks_it_down(desk: tuple[Person, Page]) -> None:
    alice, tab = desk
    run = start(alice, tab, "Customer success", "draft and send a weekly customer update")
    arrived(alice, tab, run, "Which segment?")
    alice.page.get_by_label("enterprise").check()
    alice.press("accept")
    alice.open_card_of(run, "approval")
    expect(alice.page.locator("#round-card")).to_contain_text("Weekly customer update: enterprise")
    alice.press("allow")
    expect(tab.locator("main")).to_contain_text("The weekly customer update is out", timeout=PATIENCE)
    tab.get_by_label("Reply").fill("also break it down by region")
    tab.get_by_role("button", name="Reply").click()
    alice.open_card_of(run, "approval")
    expect(alice.page.locator("#round-card")).to_contain_text("by region")
    alice.press("allow")
    alice.expect_end(run, "Completed", "Sent, broken down by region.")
