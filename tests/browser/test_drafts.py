"""What is typed is kept, what is empty is refused, and leaving sends nothing (R22, R39)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.product import Person
from tests.browser.tabs import decisions_sent, open_round, status_of

pytestmark = pytest.mark.browser

People = Callable[..., Person]


def test_what_was_typed_survives_a_reload_and_a_look_at_another_card(person: People) -> None:
    alice = person("alice")
    alice.open_card_of(alice.start_run("Customer success", "What should we prioritize?"), "question")
    page, round_id = alice.page, open_round(alice)
    other = page.get_by_label("Other answer").last
    page.get_by_label("enterprise").check()
    page.get_by_label("E-mail").check()
    other.fill("Carrier pigeon")

    page.reload()
    alice.settle()
    expect(page.get_by_label("enterprise")).to_be_checked()
    expect(page.get_by_label("E-mail")).to_be_checked()
    expect(other).to_have_value("Carrier pigeon")

    page.locator(f"#rows [data-row]:not([data-round='{round_id}']) a").first.click()
    expect(page.locator(f"#round-card:not([data-round='{round_id}'])")).to_be_visible()
    page.locator(f"#rows [data-round='{round_id}'] a").click()
    expect(page.locator(f"#round-card[data-round='{round_id}']")).to_be_visible()
    expect(other).to_have_value("Carrier pigeon")
    expect(page.get_by_label("enterprise")).to_be_checked()
    alice.press("decline")


def test_a_question_without_a_choice_and_without_words_is_refused_in_its_place(person: People) -> None:
    alice = person("alice")
    alice.open_card_of(alice.start_run("Customer success", "What should we prioritize?"), "question")
    page, round_id = alice.page, open_round(alice)
    page.get_by_label("enterprise").check()
    page.get_by_label("Other answer").last.fill("   ")
    page.locator("button[value=accept]").click()
    summary = page.locator("#error-summary")
    expect(summary).to_be_focused()
    expect(summary.get_by_role("link")).to_have_text(["Question 2: choose an option or write an answer."])
    summary.get_by_role("link").click()
    second = page.locator("fieldset.question").last
    assert second.evaluate("node => node.contains(document.activeElement)")
    expect(second.locator(".field-error")).to_have_text("Question 2: choose an option or write an answer.")
    expect(page.get_by_label("enterprise")).to_be_checked()
    assert status_of(alice, round_id) == "waiting"
    alice.settle()
    page.get_by_label("Other answer").last.fill("Carrier pigeon")
    alice.press("accept")


def test_escape_and_closing_the_tab_send_nothing(person: People) -> None:
    alice = person("alice")
    alice.open_card_of(alice.start_run("Logistics", "Book the lamp"), "elicitation")
    page, round_id, sent = alice.page, open_round(alice), decisions_sent(alice.page)
    everything: list[str] = []
    alice.context.on("request", lambda request: everything.append(f"{request.method} {request.url}"))
    card = page.locator("#round-card")
    for label in ("Decline", "Not now", "Accept"):
        expect(card.get_by_role("button", name=label)).to_be_visible()
    street = page.get_by_label("Street")
    street.fill("1 Main Street")
    street.press("Escape")
    card.get_by_role("button", name="Accept").press("Escape")
    page.locator("#card-title").press("Escape")
    # Enter in a text field is no decision either: the buttons are.
    street.press("Enter")
    expect(street).to_have_value("1 Main Street")
    tab = alice.context.new_page()
    page.close(run_before_unload=True)
    tab.goto(f"/rounds/{round_id}/")
    expect(tab.locator("#round-card[data-ready]")).to_be_visible()
    assert status_of(alice, round_id) == "waiting"
    assert sent == []
    assert [request for request in everything if not request.startswith("GET ")] == []
    # The draft was of the closed tab alone.
    expect(tab.get_by_label("Street")).to_have_value("")
    alice.page = tab
    alice.press("0:cancel")
