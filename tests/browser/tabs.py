"""What happens in one tab while another is open, and what a tab really sends."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Request

from tests.browser.product import Person


def start_in_another_tab(person: Person, agent: str, message: str) -> int:
    """Start a run without leaving the open page; gives the run's id."""
    open_page, person.page = person.page, person.context.new_page()
    run = person.start_run(agent, message)
    person.page.close()
    person.page = open_page
    return run


def decisions_sent(page: Page) -> list[str]:
    """The addresses of all decisions that `page` sends from now on; the list grows by itself."""
    sent: list[str] = []

    def note(request: Request) -> None:
        if request.method == "POST" and "/decide" in request.url:
            sent.append(request.url)

    page.on("request", note)
    return sent


def status_of(person: Person, round_id: str) -> str:
    """How the server says that a pause stands, asked for outside of every page: waiting, resumed, ..."""
    body = person.context.request.get(f"/rounds/{round_id}/ending").text()
    found = re.search(r'data-status="([^"]+)"', body)
    assert found, body
    return found.group(1)


def open_round(person: Person) -> str:
    """The id of the pause whose card is open."""
    round_id = person.page.locator("#round-card").get_attribute("data-round")
    assert round_id
    return round_id
