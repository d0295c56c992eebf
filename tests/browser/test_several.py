"""Two runs wait, both calls are allowed at once, and both runs go on (R21)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.product import PATIENCE, Person
from tests.browser.test_accessibility import LOOKS, problems

pytestmark = pytest.mark.browser

MESSAGE = "Send the welcome mail to Hafen Coffee"


def problems_in_every_look(page: Page) -> list[str]:
    """The page as it stands, with what is ticked and said on it."""
    found: list[str] = []
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        found += problems(page, width)
    return found


def test_two_calls_are_allowed_at_once_and_both_runs_go_on(person: Callable[..., Person]) -> None:
    alice = person("alice")
    inbox = alice.context.new_page()
    inbox.goto("/")
    expect(inbox.locator("#live-state")).to_contain_text("Live")
    runs = [alice.start_run("Customer success", MESSAGE) for _ in range(2)]
    for run in runs:
        alice.page.goto(f"/runs/{run}")
        expect(alice.page.locator("#run-head .waiting a")).to_be_visible(timeout=PATIENCE)
    alice.page = inbox  # its link came by itself
    alice.page.get_by_role("link", name="Allow several…").click()
    boxes = alice.page.get_by_role("checkbox")
    assert not any(box.is_checked() for box in boxes.all())
    for run in runs:
        call = alice.page.locator("li[data-round]").filter(
            has=alice.page.get_by_role("link", name=f"run {run}, step")
        )
        expect(call).to_contain_text("Your silver discount is active from today.")
        call.get_by_role("checkbox").check()
    assert problems_in_every_look(alice.page) == []
    alice.page.get_by_role("button", name="Allow the 2 chosen calls").click()
    expect(alice.page.get_by_role("status").filter(has_text="Allowed 2 calls")).to_be_visible()
    for run in runs:
        alice.expect_end(run, "Completed", "Welcome mail: done.")


def test_a_refused_batch_says_which_call_and_why_and_keeps_the_rest_chosen(
    person: Callable[..., Person],
) -> None:
    alice, bob = person("alice"), person("bob")
    runs = [alice.start_run("Customer success", MESSAGE) for _ in range(2)]
    bob.open_card_of(runs[0], "approval")
    alice.open_card_of(runs[1], "approval")
    alice.page.goto("/rounds/several")
    for run in runs:
        call = alice.page.locator("li[data-round]").filter(
            has=alice.page.get_by_role("link", name=f"run {run}, step")
        )
        call.get_by_role("checkbox").check()
    bob.press("deny")
    alice.page.get_by_role("button", name="Allow the 2 chosen calls").click()
    summary = alice.page.locator("#error-summary")
    expect(summary).to_contain_text("denied by bob")
    expect(summary).to_be_focused()
    assert problems_in_every_look(alice.page) == []
    assert alice.page.locator("input[name=call]:checked").count() == 1
    alice.page.get_by_role("button", name="Allow the 1 chosen call").click()
    alice.expect_end(runs[1], "Completed", "Welcome mail: done.")
