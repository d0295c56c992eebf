"""Every page, in every look: axe finds nothing, nothing overflows, no target is too small (R47)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.product import PATIENCE, Person

pytestmark = pytest.mark.browser

PAGES = [
    "/",
    "/runs",
    "/runs/start",
    "/runs/1",
    "/runs/5",
    "/agents",
    "/agents/1",
    "/agents/1/edit",
    "/agents/new",
    "/servers",
    "/servers/1",
    "/servers/new",
    "/policies",
    "/no-such-page",
]
LOOKS = [("light", 1440), ("dark", 1440), ("light", 320), ("dark", 320)]


@pytest.mark.parametrize(("scheme", "width"), LOOKS, ids=[f"{scheme}-{width}" for scheme, width in LOOKS])
def test_every_page_is_accessible(person: Callable[..., Person], scheme: str, width: int) -> None:
    ada = person("ada", color_scheme=scheme, viewport={"width": width, "height": 900})
    found: list[str] = []
    ada.page.goto("/")
    expect(ada.page.locator("#rows [data-row]")).to_have_count(5, timeout=PATIENCE)
    for path in [*PAGES, *_cards(ada.page)]:
        ada.page.goto(path)
        found += [f"{path}: {problem}" for problem in problems(ada.page, width)]
    assert found == []
    ada.errors.clear()  # the page that is not there


def test_the_sign_in_page_is_accessible(person: Callable[..., Person]) -> None:
    ada = person("ada")
    ada.page.get_by_text("ada ·").click()
    ada.page.get_by_role("button", name="Sign out").click()
    expect(ada.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert problems(ada.page, 1280) == []
    ada.page.get_by_label("User name").fill("ada")
    ada.page.get_by_label("Password").fill("wrong")
    ada.page.get_by_role("button", name="Sign in").click()
    expect(ada.page.locator(".error-summary")).to_be_visible()
    assert problems(ada.page, 1280) == []


def _cards(page: Page) -> list[str]:
    """One card of every kind that the demo starts with, and the approval with its arguments open for editing."""
    links = [link.get_attribute("href") or "" for link in page.locator("#rows [data-row] a").all()]
    approval = page.locator("#rows [data-row][data-kind=approval] a").first.get_attribute("href")
    return [*links, f"{approval}?edit=1"]


def problems(page: Page, width: int) -> list[str]:
    """What axe finds, whether the page scrolls sideways, and which buttons and links are below 44 px."""
    report = Axe().run(page)
    found = [f"{v['id']}: {v['nodes'][0]['html'][:120]}" for v in report.response["violations"]]
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        found.append(f"scrolls sideways: {wide} px")
    small = page.evaluate(
        """() => [...document.querySelectorAll('button, a.b, select, summary, .row a, nav a')]
             .filter((n) => n.checkVisibility() && !n.classList.contains('link-button'))
             .filter((n) => n.getBoundingClientRect().height < 43.5 && n.getBoundingClientRect().width > 1)
             .map((n) => n.outerHTML.slice(0, 80))"""
    )
    return found + [f"below 44 px: {node}" for node in small]
