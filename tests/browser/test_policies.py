"""Rules on their pages, as an admin uses them: written and confirmed, revoked in a live run, explained, imported.

Every page and state is looked at in four looks, and everything works with scripts off (R23, R27, R46, R47).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.product import PATIENCE, Person
from tests.browser.test_accessibility import LOOKS, problems

pytestmark = pytest.mark.browser

People = Callable[..., Person]
WELCOME = "Send the welcome mail to Hafen Coffee"
REFUNDS = {"version": 1, "rules": [{"effect": "allow", "target": "desk:refund", "user_id": "cust_import"}]}


def fill_in(page: Page, effect: str, target: str, user: str = "") -> None:
    page.goto("/policies")
    page.get_by_role("link", name="Add a policy").click()
    page.locator(f"input[name=effect][value={effect}]").check()
    page.get_by_label("Server or tool").fill(target)
    page.locator(f"input[name=scope][value={'user' if user else 'account'}]").check()
    page.get_by_label("End user", exact=False).last.fill(user)


def look(page: Page) -> None:
    page.get_by_role("button", name="Look at the rule").click()
    expect(page.get_by_role("heading", name="Look at the rule before you save it")).to_be_visible()


def denied(alice: Person, user: str) -> int:
    """A call for this end user that alice denies; gives its run."""
    run = alice.start_run("Customer success", WELCOME, user=user)
    alice.open_card_of(run, "approval")
    alice.press("deny")
    return run


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_rule_that_covers_a_denied_call_is_written_with_the_second_tick(
    person: People, scripts: bool
) -> None:
    user = f"cust_scripts_{scripts}"
    run = denied(person("alice"), user)
    ada = person("ada", java_script_enabled=scripts)
    fill_in(ada.page, "allow", "desk:send_email", user)
    look(ada.page)
    sentence = f"Allow desk:send_email in every run for the user {user}, until it is revoked."
    expect(ada.page.get_by_test_id("rule")).to_have_text(sentence)
    expect(ada.page.locator(".findings")).to_contain_text(
        "it would have allowed 1, of which people denied 1."
    )
    expect(ada.page.get_by_role("link", name=f"Run {run}, step").first).to_have_attribute(
        "href", f"/runs/{run}"
    )

    ada.page.get_by_role("button", name="Save the rule").click()
    expect(ada.page.locator(".error-summary")).to_contain_text("Tick that you have seen")
    ada.page.get_by_label("I have seen what the rule covers").check()
    ada.page.get_by_role("button", name="Save the rule").click()
    ada.page.wait_for_url(re.compile(r"/policies/\d+$"))
    expect(ada.page.locator(".messages")).to_contain_text(f"Saved: {sentence}")
    expect(ada.page.locator("main")).to_contain_text("Made by ada")


def test_enter_in_a_field_looks_at_the_rule_and_a_mistake_keeps_what_was_typed(person: People) -> None:
    ada = person("ada")
    fill_in(ada.page, "deny", "desk:delete customer *")
    ada.page.get_by_label("Argument", exact=True).fill("a..b")
    ada.page.get_by_role("button", name="Add another condition").click()
    expect(ada.page.get_by_role("group", name="Condition 2")).to_be_visible()
    ada.page.get_by_label("Note").fill("Never again.")
    ada.page.get_by_label("Note").press("Enter")
    summary = ada.page.locator(".error-summary")
    expect(summary).to_be_focused()
    expect(summary.get_by_role("link", name="Argument 1: The path cannot be read")).to_be_visible()
    expect(ada.page.get_by_label("Note")).to_have_value("Never again.")
    summary.get_by_role("link", name="Argument 1").click()
    expect(ada.page.get_by_label("Argument", exact=True).first).to_be_focused()


def test_a_rule_revoked_in_a_live_run_makes_its_next_call_ask(person: People) -> None:
    """The rule lets the first mail of a run go; revoked while the run is under way, the reply's mail asks."""
    ada, alice = person("ada"), person("alice")
    fill_in(ada.page, "allow", "desk:send_email", "cust_live")
    look(ada.page)
    ada.page.get_by_role("button", name="Save the rule").click()
    ada.page.wait_for_url(re.compile(r"/policies/\d+$"))
    rule = ada.page.url

    run = alice.start_run("Customer success", "draft and send a weekly customer update", user="cust_live")
    alice.open_card_of(run, "question")
    alice.page.get_by_label("enterprise").check()
    alice.press("accept")
    alice.expect_end(run, "Completed")
    ada.page.goto(rule)
    expect(ada.page.locator("main")).to_contain_text("Decided 1 call")

    ada.page.get_by_role("link", name="Revoke").click()
    ada.page.get_by_role("button", name="Revoke").click()
    expect(ada.page.locator(".messages")).to_contain_text("Revoked: Allow desk:send_email")
    alice.page.goto(f"/runs/{run}")
    alice.page.get_by_label("Reply").fill("also break it down by region")
    alice.page.get_by_role("button", name=re.compile("Reply|Send")).click()
    alice.open_card_of(run, "approval")
    expect(alice.page.locator("#round-card")).to_contain_text("no policy covers it")
    ada.page.goto(rule)
    expect(ada.page.locator("main")).to_contain_text("Revoked by ada")
    ada.errors.clear()  # the rule that is gone answers 404


def test_a_call_is_explained_before_and_after_a_rule(person: People) -> None:
    ada, vera = person("ada"), person("vera", java_script_enabled=False)
    for page, word in ((ada.page, "A person is asked"), (vera.page, "Denied")):
        page.goto("/policies/explain")
        page.get_by_label("Tool", exact=True).fill("desk:update_customer")
        page.get_by_label("Arguments").fill('{"id": 4711}')
        page.get_by_role("button", name="Explain").click()
        expect(page.get_by_role("heading", name=word)).to_be_visible()
        if page is ada.page:
            fill_in(page, "deny", "desk:update_customer")
            page.get_by_label("Argument", exact=True).fill("id")
            page.get_by_label("Value", exact=True).fill("4711")
            look(page)
            page.get_by_role("button", name="Save the rule").click()
            page.wait_for_url(re.compile(r"/policies/\d+$"))
    expect(vera.page.locator("#answer")).to_contain_text("Deny desk:update_customer where id is 4711")


def test_rules_are_exported_and_imported_after_a_look(person: People) -> None:
    ada = person("ada", java_script_enabled=False)
    ada.page.goto("/policies/import")
    ada.page.get_by_label("Or paste it here").fill(json.dumps(REFUNDS))
    ada.page.get_by_role("button", name="Look at the import").click()
    expect(ada.page.locator(".findings")).to_contain_text("desk:refund is high-stakes (money)")
    ada.page.get_by_label("I have seen what these rules cover").check()
    ada.page.get_by_role("button", name="Import the rules").click()
    expect(ada.page.locator(".messages")).to_contain_text("Imported: 1 made")

    ada.page.goto("/policies/import")
    with ada.page.expect_download() as download:
        ada.page.get_by_role("link", name="Download the rules").click()
    exported = json.loads(download.value.path().read_text())
    assert "desk:refund" in {rule["target"] for rule in exported["rules"]}
    ada.page.get_by_label("File").set_input_files(download.value.path())
    ada.page.get_by_role("button", name="Look at the import").click()
    expect(ada.page.locator("main")).to_contain_text("There is nothing to do.")


@pytest.mark.parametrize(("scheme", "width"), LOOKS, ids=[f"{scheme}-{width}" for scheme, width in LOOKS])
def test_every_state_of_the_pages_is_accessible(person: People, scheme: str, width: int) -> None:
    user = f"cust_{scheme}_{width}"
    denied(person("alice"), user)
    ada = person("ada", color_scheme=scheme, viewport={"width": width, "height": 900})
    page, found = ada.page, []

    def check(state: str) -> None:
        page.locator("main").wait_for(timeout=PATIENCE)
        found.extend(f"{state}: {problem}" for problem in problems(page, width))

    for path in ("/policies", "/policies/new", "/policies/explain", "/policies/history", "/policies/import"):
        page.goto(path)
        check(path)
    page.goto("/policies/new")
    page.get_by_role("button", name="Look at the rule").click()
    check("mistakes in the form")
    fill_in(page, "allow", "desk", user)
    page.get_by_label("Argument", exact=True).fill("to")
    page.get_by_label("Comparison").select_option("glob")
    page.get_by_label("Value", exact=True).fill("*")
    look(page)
    check("a rehearsal")
    page.get_by_role("button", name="Save the rule").click()
    check("no second tick")
    page.locator("#confirm").check()
    page.get_by_role("button", name="Save the rule").click()
    page.wait_for_url(re.compile(r"/policies/\d+$"))
    rule = page.url
    check("a rule")
    page.get_by_text("Suspend it").click()
    page.get_by_role("button", name="Suspend", exact=True).click()
    check("no reason")
    page.get_by_label("Reason").fill("Under review.")
    page.get_by_role("button", name="Suspend", exact=True).click()
    check("a suspended rule")
    page.get_by_role("link", name="Renew").click()
    check("renewing")
    page.get_by_role("button", name="Renew this rule").click()
    page.get_by_text("Change its end or note").click()
    check("changing the end")
    page.goto("/policies/explain")
    page.get_by_label("Tool", exact=True).fill("desk:refund")
    page.get_by_role("button", name="Explain").click()
    check("an explanation")
    page.get_by_label("Arguments").fill("{")
    page.get_by_role("button", name="Explain").click()
    check("a question with a mistake")
    for text, state in (("{", "no JSON"), (json.dumps(REFUNDS), "a look at an import")):
        page.goto("/policies/import")
        page.get_by_label("Or paste it here").fill(text)
        page.get_by_role("button", name="Look at the import").click()
        check(state)
    for path in ("/policies?state=in_force", "/policies/history", f"{rule}/revoke"):
        page.goto(path)
        check(path)
    page.get_by_role("button", name="Revoke").click()
    page.goto(rule)
    check("a rule that is gone")
    assert found == []
    ada.errors.clear()  # the rule that is gone answers 404
