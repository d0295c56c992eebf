"""What an admin does on the pages of servers and agents, as a person does it."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import expect

from tests.browser.product import PATIENCE, Person

_KINDS = {"entry": "A program of the host's list", "command": "A command (demo mode)", "url": "A URL"}
_BOXES = {"entry": "Entry", "command": "Command", "url": "URL"}


def add_server(ada: Person, name: str, kind: str, address: str, *, trusted: bool = False) -> str:
    """From the list of servers to the new one's page; gives the path of that page.

    `kind` is entry (then `address` is a name of the host's list), command or url.
    """
    page = ada.page
    page.goto("/servers")
    page.get_by_role("link", name="Add a server").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label(_KINDS[kind]).check()
    box = page.get_by_label(_BOXES[kind], exact=True)
    if kind == "entry":
        box.select_option(label=address)
    else:
        box.fill(address)
    if trusted:
        page.get_by_label("Trust this server's own word").check()
    page.get_by_role("button", name="Save server").click()
    page.wait_for_url(re.compile(r"/servers/\d+$"))
    expect(page.locator("#looked-at")).to_contain_text("Not tested")
    return page.url.removeprefix(ada.product.url)


def look_at_it(person: Person, says: str) -> None:
    """Look at the open server and wait until the page says so, without a reload."""
    person.page.get_by_role("button", name="Test connection").click()
    expect(person.page.locator("#looked-at")).to_contain_text(says, timeout=PATIENCE)


def write_agent(ada: Person, name: str, servers: list[str], playbook: str | dict[str, Any]) -> None:
    """Fill the editor of a new agent and try to save it; what comes of it is the caller's business."""
    page = ada.page
    page.goto("/agents")
    page.get_by_role("link", name="Add an agent").click()
    page.get_by_label("Name", exact=True).fill(name)
    for server in servers:
        page.get_by_label(server, exact=True).check()
    text = playbook if isinstance(playbook, str) else json.dumps(playbook, indent=2)
    page.get_by_label("Playbook", exact=True).fill(text)
    page.get_by_role("button", name="Save agent").click()


def add_agent(ada: Person, name: str, servers: list[str], playbook: dict[str, Any]) -> None:
    write_agent(ada, name, servers, playbook)
    ada.page.wait_for_url(re.compile(r"/agents/\d+$"))
    expect(ada.page.locator(".messages")).to_contain_text(f"{name} is saved.")
