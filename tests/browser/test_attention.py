"""How a page asks for attention, and what it does without its connection (R44, R45, R46)."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from m3web.demo.playbooks import FIRST_RUNS
from tests.browser.product import PATIENCE, Person
from tests.browser.tabs import decisions_sent, open_round, start_in_another_tab, status_of

pytestmark = pytest.mark.browser

People = Callable[..., Person]

MAIL = ("Customer success", "Send the welcome mail to Hafen Coffee")
SAY_EVERY = 5000
"""Milliseconds between two sentences of the live region (R46)."""

BANNER_WITHIN = 5000
"""Milliseconds until a lost line is shown (R45)."""

STAND_IN = """
  window.away = false; window.asked = 0; window.notes = [];
  Object.defineProperty(document, "hidden", {get: () => window.away});
  window.Notification = class extends EventTarget {
    static permission = "default";
    static async requestPermission() { window.asked += 1; return Notification.permission = "granted"; }
    constructor(title, {body}) { super(); Object.assign(this, {title, body, open: true}); window.notes.push(this); }
    close() { this.open = false; }
  };
"""
"""A page that counts what it asks of the browser and shows, and that can be told that it is hidden."""


class Line:
    """The socket of one page, through which the test can break it and mend it."""

    def __init__(self, page: Page) -> None:
        self.broken, self.sockets = False, list[WebSocketRoute]()
        page.route_web_socket(re.compile("/ws/hints/"), self._opened)

    def _opened(self, socket: WebSocketRoute) -> None:
        if self.broken:
            socket.close(code=1011)
            return
        socket.connect_to_server()
        self.sockets.append(socket)

    def cut(self) -> None:
        self.broken = True
        for socket in self.sockets:
            socket.close(code=1011)
        self.sockets.clear()

    def mend(self) -> None:
        self.broken = False


def live(person: Person) -> Page:
    """The inbox, live, once the demo's own requests have arrived; what comes from then on is the test's."""
    person.page.goto("/")
    expect(person.page.locator("#live-state")).to_contain_text("Live")
    person.page.wait_for_function(
        "least => document.querySelectorAll('#rows [data-row]').length >= least",
        arg=len(FIRST_RUNS),
        timeout=PATIENCE,
    )
    return person.page


def waiting(page: Page) -> int:
    return int(page.locator("[data-pending-count]").inner_text() or 0)


def icon(page: Page) -> str:
    return page.locator("link[rel=icon]").get_attribute("href") or ""


def switch_notifications(page: Page, word: str) -> None:
    page.locator("details.menu > summary").click()
    button = page.get_by_role("button", name="Notifications")
    button.click()
    expect(button.locator(".v")).to_have_text(word)
    page.keyboard.press("Escape")


def test_title_and_icon_count_and_are_plain_again_when_nothing_waits(person: People) -> None:
    alice = person("alice")
    sockets: list[WebSocketRoute] = []

    def opened(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    alice.page.route_web_socket(re.compile("/ws/hints/"), opened)
    page = live(alice)
    before = waiting(page)
    badge = page.locator("link[rel=icon][href^='data:image/png']")
    expect(badge).to_be_attached()
    first = icon(page)
    start_in_another_tab(alice, *MAIL)
    expect(page).to_have_title(f"({before + 1}) Inbox · M3 Web", timeout=PATIENCE)
    page.wait_for_function("was => document.querySelector('link[rel=icon]').href !== was", arg=first)
    expect(badge).to_be_attached()
    # Everything is decided, says the line.
    sockets[0].send('{"type": "hello", "pending_count": 0}')
    expect(page).to_have_title("Inbox · M3 Web")
    expect(page.locator("link[rel=icon][href$='favicon.svg']")).to_be_attached()


def test_notifications_come_only_after_the_switch_and_only_while_the_page_is_hidden(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    alice.page.add_init_script(STAND_IN)
    page = live(alice)
    rows = page.locator("#rows [data-row]")

    def arrives(*, away: bool) -> str:
        """A mail of bob's that alice's list shows; gives the id of its pause."""
        page.evaluate("away => { window.away = away; }", away)
        known = {row.get_attribute("data-round") for row in rows.all()}
        bob.start_run(*MAIL)
        expect(rows).to_have_count(len(known) + 1, timeout=PATIENCE)
        (new,) = {row.get_attribute("data-round") for row in rows.all()} - known
        assert new
        return new

    arrives(away=True)
    assert page.evaluate("[asked, notes.length]") == [0, 0]
    switch_notifications(page, "on")
    arrives(away=False)
    assert page.evaluate("[asked, notes.length]") == [1, 0]

    new = arrives(away=True)
    page.wait_for_function("() => notes.length === 1")
    assert "piet@hafen.example" in page.evaluate("notes[0].body")
    page.evaluate("notes[0].dispatchEvent(new Event('click'))")
    expect(page.locator(f"#round-card[data-round='{new}']")).to_be_visible()
    expect(page.locator("#card-title")).to_be_focused()
    assert page.evaluate("notes[0].open") is False

    new = arrives(away=True)
    page.wait_for_function("() => notes.length === 2 && notes[1].open")
    bob.page.goto(f"/rounds/{new}/")
    bob.press("deny")
    page.wait_for_function("() => !notes[1].open")

    switch_notifications(page, "off")
    arrives(away=True)
    assert page.evaluate("[asked, notes.length]") == [1, 2]


def test_a_lost_line_is_shown_decisions_go_on_and_the_list_is_fetched_again(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    line = Line(alice.page)
    alice.open_card_of(alice.start_run(*MAIL), "approval")
    page, banner = alice.page, alice.page.locator("#banner-lost")
    expect(page.locator("#live-state")).to_contain_text("Live")
    line.cut()
    expect(banner).to_be_visible(timeout=BANNER_WITHIN)
    expect(page.locator("#live-state")).to_contain_text("Not connected")
    run = bob.start_run(*MAIL)
    bob.open_card_of(run, "approval")
    missed = open_round(bob)
    alice.press("deny")
    expect(page.locator("#receipts")).to_contain_text("Denied")
    # The list does not know the newcomer until it is fetched.
    expect(page.locator(f"#rows [data-round='{missed}']")).to_have_count(0)
    line.mend()
    page.locator("#reconnect").click()
    expect(banner).to_be_hidden(timeout=PATIENCE)
    expect(page.locator(f"#rows [data-round='{missed}']")).to_be_visible()
    expect(page.locator("#live-state")).to_contain_text("Live")


def test_a_run_that_the_server_could_not_show_for_a_while_is_looked_at_again_without_another_hint(
    person: People,
) -> None:
    alice, bob = person("alice"), person("bob")
    run = alice.start_run(*MAIL)
    expect(alice.page.locator("#live-state")).to_contain_text("Live")
    refused: list[str] = []

    def refuse(route: Route) -> None:
        refused.append(route.request.url)
        route.fulfill(status=503, body="The database does not answer.")

    alice.page.route("**/timeline?*", refuse)
    bob.open_card_of(run, "approval")
    bob.press("deny")
    bob.expect_end(run, "Completed")  # the last hint is out
    with alice.page.expect_response("**/timeline?*", timeout=PATIENCE):
        pass
    expect(alice.page.locator("#timeline")).not_to_contain_text("Was not allowed")
    alice.page.unroute("**/timeline?*")
    expect(alice.page.locator("#timeline")).to_contain_text("Was not allowed", timeout=PATIENCE)
    assert refused
    alice.errors[:] = [error for error in alice.errors if "status of 503" not in error]


def test_what_could_not_be_sent_is_never_sent_later_by_itself(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    alice.open_card_of(alice.start_run(*MAIL), "approval")
    page, round_id, sent = alice.page, open_round(alice), decisions_sent(alice.page)
    page.get_by_label("Tell the agent").fill("Not this one.")
    alice.context.set_offline(True)
    expect(page.locator("#banner-lost")).to_be_visible(timeout=BANNER_WITHIN)
    page.locator("button[value=deny]").click()
    expect(page.locator("#toasts")).to_contain_text(
        "Nothing was decided, and nothing will be sent by itself."
    )
    tried = len(sent)
    alice.context.set_offline(False)
    expect(page.locator("#banner-lost")).to_be_hidden(timeout=PATIENCE)
    # What arrives over the new line shows that the page had every chance to send.
    bob.start_run(*MAIL)
    rows = page.locator("#rows [data-row]")
    expect(page.locator("#live")).to_contain_text("new request", timeout=PATIENCE)
    assert rows.count() > 1
    assert len(sent) == tried
    assert status_of(alice, round_id) == "waiting"
    expect(page.get_by_label("Tell the agent")).to_have_value("Not this one.")
    alice.press("deny")
    assert len(sent) == tried + 1
    # The browser and htmx log that they were offline, and nothing else has gone wrong.
    told = re.compile("ERR_INTERNET_DISCONNECTED|htmx:(afterRequest|sendError)")
    assert [error for error in alice.errors if not told.search(error)] == []
    alice.errors.clear()


def test_new_requests_are_said_politely_and_not_more_often_than_every_five_seconds(person: People) -> None:
    alice, bob = person("alice"), person("bob")
    page = live(alice)
    region = page.locator("#live")
    expect(region).to_have_attribute("aria-live", "polite")
    before = waiting(page)
    page.evaluate(
        """() => { window.said = []; const live = document.getElementById('live');
                   new MutationObserver(() => said.push([Date.now(), live.textContent]))
                     .observe(live, {childList: true}); }"""
    )
    for _ in range(3):
        bob.start_run(*MAIL)
    expect(region).to_contain_text(f"{before + 3} waiting", timeout=PATIENCE)
    said: list[tuple[int, str]] = page.evaluate("said")
    fresh = [re.fullmatch(r"(\d) new requests?, (\d+) waiting", text) for _, text in said]
    assert all(fresh), said
    assert sum(int(match.group(1)) for match in fresh if match) == 3
    times = [at for at, _ in said]
    gaps = [after - at for at, after in pairwise(times)]
    assert all(gap >= SAY_EVERY - 50 for gap in gaps), said


def test_mistakes_are_listed_first_lead_to_their_fields_and_the_next_card_gets_the_focus(
    person: People,
) -> None:
    alice = person("alice")
    alice.open_card_of(alice.start_run("Logistics", "Book the lamp"), "elicitation")
    page, round_id = alice.page, open_round(alice)
    street, city = page.get_by_label("Street"), page.get_by_label("City")
    street.fill("1 Main Street")
    page.get_by_role("button", name="Accept").click()
    summary = page.locator("#error-summary")
    expect(summary).to_be_focused()
    link = summary.get_by_role("link", name=re.compile("City"))
    words = link.inner_text()
    link.click()
    expect(city).to_be_focused()
    described = (city.get_attribute("aria-describedby") or "").split()
    inline = " ".join(page.locator(f"[id='{name}']").inner_text() for name in described)
    assert words.removeprefix("City: ") in inline
    expect(city).to_have_attribute("aria-invalid", "true")
    expect(street).to_have_value("1 Main Street")
    city.fill("Pune")
    alice.press("0:accept")
    assert open_round(alice) != round_id
    expect(page.locator("#card-title")).to_be_focused()
