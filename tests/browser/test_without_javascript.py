"""Everything is a plain page with plain forms underneath."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.product import PATIENCE, Person

pytestmark = pytest.mark.browser


def until_waiting(alice: Person, run: int) -> None:
    """Without scripts a person reloads."""
    for _ in range(60):
        alice.page.goto(f"/runs/{run}")
        if alice.page.locator("#run-head .waiting a").count():
            return
        alice.page.wait_for_timeout(500)
    raise AssertionError(f"run {run} never waited for a person")


def until_finished(alice: Person, run: int, text: str) -> None:
    for _ in range(60):
        alice.page.goto(f"/runs/{run}")
        if text in alice.page.locator("main").inner_text():
            return
        alice.page.wait_for_timeout(500)
    raise AssertionError(f"run {run} never said {text!r}")


def test_a_form_and_an_approval_are_decided_with_javascript_off(person: Callable[..., Person]) -> None:
    alice = person("alice", java_script_enabled=False)
    run = alice.start_run("Logistics", "Book the lamp for order 79")
    until_waiting(alice, run)
    alice.page.locator("#run-head .waiting a").click()
    alice.page.locator("button[value='0:accept']").click()
    expect(alice.page.locator(".error-summary").first).to_be_visible(timeout=PATIENCE)
    alice.page.get_by_label("Street").fill("1 Main Street")
    alice.page.get_by_label("City").fill("Pune")
    alice.page.locator("button[value='0:accept']").click()
    until_finished(alice, run, "Booked. Tracking number NW")

    run = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    until_waiting(alice, run)
    alice.page.locator("#run-head .waiting a").click()
    alice.page.get_by_role("link", name="Edit arguments").click()
    alice.page.get_by_label("Subject").fill("Edited without scripts")
    alice.page.locator("button[value=allow]").click()
    until_finished(alice, run, "Welcome mail: done.")


def test_questions_and_plans_are_decided_with_javascript_off(person: Callable[..., Person]) -> None:
    alice = person("alice", java_script_enabled=False)
    run = alice.start_run("Customer success", "What should we prioritize?")
    until_waiting(alice, run)
    alice.page.locator("#run-head .waiting a").click()
    alice.page.get_by_label("mid-market").check()
    alice.page.get_by_label("Phone").check()
    alice.page.locator("button[value=accept]").click()
    until_finished(alice, run, "mid-market first, by Phone")

    run = alice.start_run("Operations planner", "Hand over the West region")
    until_waiting(alice, run)
    alice.page.locator("#run-head .waiting a").click()
    alice.page.locator("button[value=approve]").click()
    until_waiting(alice, run)
    alice.page.locator("#run-head .waiting a").click()
    alice.page.locator("button[value=deny]").click()
    until_finished(alice, run, "Note: denied.")
