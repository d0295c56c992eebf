"""Remembering an allow: what the rule covers is read and confirmed, with and without scripts (R16, R23, R47)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.product import PATIENCE, Person
from tests.browser.test_accessibility import problems

pytestmark = pytest.mark.browser

People = Callable[..., Person]
WELCOME = "Send the welcome mail to Hafen Coffee"


def denied_before(alice: Person, message: str, user: str) -> None:
    run = alice.start_run("Customer success", message, user=user)
    alice.open_card_of(run, "approval")
    alice.press("deny")


def test_a_rule_that_covers_a_denied_call_is_saved_after_the_tick(person: People) -> None:
    alice = person("alice")
    denied_before(alice, WELCOME, "cust_denied")
    run = alice.start_run("Customer success", WELCOME, user="cust_denied")
    alice.open_card_of(run, "approval")
    rules = alice.page.get_by_role("group", name="If you allow it: next time")
    expect(rules.get_by_role("link", name="by alice in run").first).to_be_visible()
    rules.get_by_role("radio", name="Always allow for cust_denied, until somebody revokes it").check()
    alice.page.locator("button[value=allow]").click()
    expect(alice.page.locator(".error-summary")).to_contain_text("has to be confirmed", timeout=PATIENCE)
    alice.settle()
    expect(rules.get_by_role("radio", name="Always allow for cust_denied, until")).to_be_checked()
    rules.get_by_role("checkbox", name="I have seen what the rule covers").check()
    alice.press("allow")
    expect(alice.page.locator("#receipts")).to_contain_text("Remembered", timeout=PATIENCE)
    again = alice.start_run("Customer success", WELCOME, user="cust_denied")
    alice.expect_end(again, "Completed", "Welcome mail: done.")
    assert not alice.errors


def test_a_rule_for_edited_arguments_is_shown_and_then_saved_with_javascript_off(person: People) -> None:
    alice = person("alice", java_script_enabled=False)
    run = alice.start_run("Customer success", WELCOME, user="cust_plain")
    link = alice.page.locator("#run-head .waiting a").first
    for _ in range(60):
        alice.page.goto(f"/runs/{run}")
        if link.count():
            break
        alice.page.wait_for_timeout(500)
    link.click()
    alice.page.get_by_role("link", name="Edit arguments").click()
    alice.page.get_by_label("Subject").fill("Edited for good")
    alice.page.get_by_text("Only with exactly these arguments").click()
    always = alice.page.get_by_role(
        "radio", name="Always allow for cust_plain, until somebody revokes it (exactly"
    )
    always.check()
    alice.page.locator("button[value=allow]").click()
    expect(alice.page.locator(".error-summary")).to_contain_text("Look at it once more")
    expect(alice.page.locator("#remember-rules details")).to_contain_text('"subject":"Edited for good"')
    expect(always).to_be_checked()
    alice.page.locator("button[value=allow]").click()
    expect(alice.page.get_by_text("Allowed: ").first).to_be_visible()
    alice.page.goto("/policies")
    expect(alice.page.locator("main")).to_contain_text('"subject":"Edited for good"')


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1440])
def test_the_ways_to_remember_are_accessible(person: People, scheme: str, width: int) -> None:
    alice = person("alice", color_scheme=scheme, viewport={"width": width, "height": 900})
    user = f"cust_{scheme}_{width}"
    denied_before(alice, "Please refund O-5003", user)
    run = alice.start_run("Customer success", "Please refund O-5003", user=user)
    alice.open_card_of(run, "approval")
    alice.page.get_by_text("Only with exactly these arguments").click()
    expect(alice.page.get_by_role("checkbox", name="I have seen what the rule covers")).to_be_visible()
    assert problems(alice.page, width) == []
    alice.press("deny")
