"""Keys and focus: nothing is decided by a key that was meant for something else (R17, R18)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.product import PATIENCE, Person
from tests.browser.tabs import decisions_sent, open_round, start_in_another_tab, status_of

pytestmark = pytest.mark.browser

People = Callable[..., Person]

MAIL = ("Customer success", "Send the welcome mail to Hafen Coffee")
GUARD = 500
"""Milliseconds in which a new card ignores clicks and keys (R17)."""


def with_mail(person: People, **context: object) -> tuple[Person, Page, Locator]:
    """alice with the card of a mail open: herself, her page, the card's heading."""
    alice = person("alice", **context)
    alice.open_card_of(alice.start_run(*MAIL), "approval")
    return alice, alice.page, alice.page.locator("#card-title")


def switch_shortcuts(page: Page, word: str) -> None:
    page.locator("details.menu > summary").click()
    button = page.get_by_role("button", name="Keyboard shortcuts")
    button.click()
    expect(button.locator(".v")).to_have_text(word)
    page.keyboard.press("Escape")


def test_a_request_that_arrives_takes_no_focus_and_changes_no_open_card(person: People) -> None:
    alice, page, _ = with_mail(person)
    before = open_round(alice)
    words = page.get_by_label("Tell the agent")
    words.fill("I am still wri")
    rows = page.locator("#rows [data-row]")
    count = rows.count()
    start_in_another_tab(alice, *MAIL)
    expect(rows).to_have_count(count + 1, timeout=PATIENCE)
    expect(words).to_be_focused()
    page.keyboard.type("ting")
    expect(words).to_have_value("I am still writing")
    assert open_round(alice) == before
    # With the focus nowhere, it stays nowhere.
    words.blur()
    start_in_another_tab(alice, *MAIL)
    expect(rows).to_have_count(count + 2, timeout=PATIENCE)
    assert page.evaluate("document.activeElement === document.body")
    assert open_round(alice) == before


def test_keys_outside_of_the_card_and_in_its_fields_decide_nothing(person: People) -> None:
    alice, page, title = with_mail(person)
    round_id, sent = open_round(alice), decisions_sent(page)
    page.locator(".brand").first.press("d")
    page.locator("#rows [data-row] a").first.press("a")
    words = page.get_by_label("Tell the agent")
    words.press_sequentially("add")
    expect(words).to_have_value("add")
    page.get_by_role("radio", name="Just this call").press("d")
    for chord in ("Control+d", "Alt+a", "Meta+a"):
        title.press(chord)
    assert status_of(alice, round_id) == "waiting"
    title.press("e")
    expect(page.get_by_role("heading", name="Edit what will be sent")).to_be_visible()
    alice.settle()
    page.get_by_label("Subject").press("d")
    title.press("d")
    expect(page.locator(f"#receipts [data-receipt='{round_id}']")).to_contain_text("Denied", timeout=PATIENCE)
    assert len(sent) == 1


def test_shortcuts_can_be_switched_off_and_stay_off(person: People) -> None:
    alice, page, title = with_mail(person)
    round_id, sent = open_round(alice), decisions_sent(page)
    keys = page.locator(".act kbd").first
    expect(keys).to_be_visible()
    switch_shortcuts(page, "off")
    expect(keys).to_be_hidden()
    title.press("d")
    page.reload()
    alice.settle()
    title.press("d")
    assert status_of(alice, round_id) == "waiting"
    switch_shortcuts(page, "on")
    title.press("d")
    expect(page.locator(f"#receipts [data-receipt='{round_id}']")).to_be_visible(timeout=PATIENCE)
    assert len(sent) == 1


def test_a_new_card_ignores_clicks_and_keys_for_half_a_second(person: People) -> None:
    alice, page, title = with_mail(person)
    round_id, sent = open_round(alice), decisions_sent(page)
    page.clock.install()
    page.clock.pause_at(dt.datetime.now() + dt.timedelta(seconds=10))
    page.reload()
    page.clock.run_for(GUARD - 1)
    page.locator("button[value=deny]").click()
    title.press("d")
    page.locator("button[value=allow]").press("Enter")
    page.clock.run_for(1)
    expect(page.locator("#round-card[data-ready]")).to_be_visible()
    assert sent == []
    title.press("d")
    expect(page.locator(f"#receipts [data-receipt='{round_id}']")).to_be_visible(timeout=PATIENCE)
    # The next card has come under the same finger; a second press is not for it.
    following = open_round(alice)
    assert following != round_id
    title.press("d")
    page.locator("#round-card .act .b").first.click()
    page.clock.run_for(GUARD)
    expect(page.locator("#round-card[data-ready]")).to_be_visible()
    assert len(sent) == 1
    assert status_of(alice, following) == "waiting"


def test_when_the_buttons_are_out_of_sight_the_first_press_shows_them_and_the_second_decides(
    person: People,
) -> None:
    alice, page, title = with_mail(person, viewport={"width": 1280, "height": 420})
    round_id, sent = open_round(alice), decisions_sent(page)
    deny, allow = page.locator("button[value=deny]"), page.locator("button[value=allow]")
    title.focus()
    title.scroll_into_view_if_needed()
    expect(deny).not_to_be_in_viewport()
    title.press("d")
    expect(deny).to_be_in_viewport(ratio=1)
    expect(page.locator("#live")).to_have_text("Press D again: Deny.")
    # Another key is another decision, and begins anew.
    title.press("a")
    expect(page.locator("#live")).to_have_text("Press A again: Allow.")
    expect(allow).to_have_class("b primary armed")
    expect(deny).not_to_have_class("armed")
    title.press("d")
    assert status_of(alice, round_id) == "waiting"
    title.press("d")
    expect(page.locator(f"#receipts [data-receipt='{round_id}']")).to_contain_text("Denied", timeout=PATIENCE)
    assert len(sent) == 1


def test_an_armed_key_forgets_after_five_seconds(person: People) -> None:
    alice, page, title = with_mail(person, viewport={"width": 1280, "height": 420})
    round_id, sent = open_round(alice), decisions_sent(page)
    page.clock.install()
    page.reload()
    alice.settle()
    title.press("a")
    allow = page.locator("button[value=allow]")
    expect(allow).to_have_class("b primary armed")
    page.clock.fast_forward(5000)
    expect(allow).to_have_class("b primary")
    title.evaluate("node => node.scrollIntoView({block: 'start'})")
    title.press("a")
    expect(allow).to_have_class("b primary armed")
    assert status_of(alice, round_id) == "waiting"
    assert sent == []
