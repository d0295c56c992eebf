"""Plans that name the mode that follows, and policies that the timeline names, as people meet them (R27)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.product import PATIENCE, Person
from tests.browser.test_accessibility import problems

pytestmark = pytest.mark.browser

People = Callable[..., Person]
WELCOME = "Send the welcome mail to Hafen Coffee"


def test_a_plan_is_approved_with_the_mode_that_follows(person: People) -> None:
    alice = person("alice")
    run = alice.start_run("Operations planner", "Move the western customers", mode="plan")
    alice.open_card_of(run, "plan")
    alice.page.get_by_label("Once it is approved").select_option("autonomous")
    alice.press("approve")
    alice.page.goto(f"/runs/{run}")
    timeline = alice.page.locator("#timeline")
    expect(timeline).to_contain_text("alice changed the mode from plan to autonomous", timeout=PATIENCE)
    expect(timeline).to_contain_text("Started the agent Logistics", timeout=PATIENCE)
    expect(timeline).not_to_contain_text("Waits for permission")
    expect(timeline).not_to_contain_text("allowed it")


def test_a_call_that_a_policy_allowed_is_revoked_from_the_timeline(person: People) -> None:
    alice = person("alice")
    first = alice.start_run("Customer success", WELCOME, user="cust_timeline")
    alice.open_card_of(first, "approval")
    alice.page.get_by_role("radio", name="Always allow for cust_timeline, until somebody revokes it").check()
    alice.press("allow")
    second = alice.start_run("Customer success", WELCOME, user="cust_timeline")
    alice.expect_end(second, "Completed", "Welcome mail: done.")
    said = "Allowed by the policy: Allow desk:send_email in every run for the user cust_timeline"
    expect(alice.page.locator("#timeline")).to_contain_text(said)

    alice.page.get_by_role("link", name="Revoke the policy: Allow desk:send_email").click()
    alice.page.get_by_role("button", name="Revoke").click()
    alice.page.goto(f"/runs/{second}")
    expect(alice.page.locator("#timeline")).to_contain_text("alice revoked it on")
    expect(alice.page.get_by_role("link", name="Revoke the policy")).to_have_count(0)
    third = alice.start_run("Customer success", WELCOME, user="cust_timeline")
    alice.open_card_of(third, "approval")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1440])
def test_the_choice_of_the_mode_and_the_named_policy_are_accessible(
    person: People, scheme: str, width: int
) -> None:
    alice = person("alice", color_scheme=scheme, viewport={"width": width, "height": 900})
    run = alice.start_run("Operations planner", "Move the western customers", mode="plan")
    alice.open_card_of(run, "plan")
    assert problems(alice.page, width) == []
    user = f"cust_{scheme}_{width}"
    for_user = alice.start_run("Customer success", WELCOME, user=user)
    alice.open_card_of(for_user, "approval")
    alice.page.get_by_role("radio", name=f"Always allow for {user}, until somebody revokes it").check()
    alice.press("allow")
    named = alice.start_run("Customer success", WELCOME, user=user)
    expect(alice.page.locator("#timeline")).to_contain_text("Allowed by the policy:", timeout=PATIENCE)
    alice.expect_end(named, "Completed", "Welcome mail: done.")
    assert problems(alice.page, width) == []
