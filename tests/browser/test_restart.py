"""The product is stopped, or killed, with cards pending: every card is there again and can be decided (R1)."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from runs.keeper.place import socket_folder
from tests.browser.product import PATIENCE, Person, Product
from tests.mcp.test_reattach_stdio import keepers_in

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["stopped", "killed"])
def test_cards_outlive_the_process_and_open_pages_find_back(
    person: Callable[..., Person], product: Product, how: int
) -> None:
    alice = person("alice")
    form = alice.start_run("Logistics", "Book the lamp for order 80")
    approval = alice.start_run("Customer success", "Send the welcome mail to Hafen Coffee")
    alice.open_card_of(form, "elicitation")
    alice.page.get_by_label("Street").fill("1 Main Street")
    waiting = alice.context.new_page()
    waiting.goto(f"/runs/{approval}")
    expect(waiting.locator("#run-head .waiting a")).to_be_visible(timeout=PATIENCE)

    code = product.stop(how)
    assert code == (0 if how == signal.SIGINT else -signal.SIGKILL)
    expect(alice.page.locator("#banner-lost")).to_be_visible(timeout=PATIENCE)
    product.start()
    expect(alice.page.locator("#banner-lost")).to_be_hidden(timeout=PATIENCE)

    expect(alice.page.get_by_label("Street")).to_have_value("1 Main Street")
    alice.page.get_by_label("City").fill("Pune")
    alice.press("0:accept")
    alice.expect_end(form, "Completed", "Tracking number NW")
    alice.open_card_of(approval, "approval")
    alice.press("allow")
    alice.expect_end(approval, "Completed", "Welcome mail: done.")
    alice.errors.clear()  # the browser logs every refused connection while nobody listened


def test_a_live_session_of_an_older_server_that_is_lost_ends_its_run_with_a_clear_word(
    person: Callable[..., Person], product: Product
) -> None:
    alice = person("alice")
    run = refund_that_waits(alice)  # before the test below, which pays the order's money back
    product.stop(signal.SIGKILL)
    kill_keepers(product)
    product.start()
    alice.expect_end(run, "Failed", "The process that kept the server's session is gone")
    alice.errors.clear()


def test_a_form_on_a_live_session_of_an_older_server_outlives_a_kill_and_is_answered_after_it(
    person: Callable[..., Person], product: Product
) -> None:
    alice = person("alice")
    run = refund_that_waits(alice)
    product.stop(signal.SIGKILL)
    product.start()
    alice.expect_end(run, "went on with the same session of the server")
    alice.open_card_of(run, "elicitation")
    card = alice.page.locator("#round-card")
    for box in card.locator("fieldset", has=alice.page.locator("input[type=radio]")).all():
        box.locator("input[type=radio]").first.check()
    for field in card.locator("input[type=text]").all():
        field.fill(field.input_value() or "86.4")
    alice.press("0:accept")
    alice.open_card_of(run, "elicitation")
    alice.press("0:accept")
    alice.expect_end(run, "Completed", "Refund: done.")
    alice.errors.clear()


def refund_that_waits(alice: Person) -> int:
    """A run whose call has been allowed and now asks a form on its live session."""
    run = alice.start_run("Customer success", "refund the chipped tableware")
    alice.open_card_of(run, "approval")
    alice.press("allow")
    alice.open_card_of(run, "elicitation")
    return run


def kill_keepers(product: Product) -> None:
    """What keeps this product's sessions of older servers alive, and with them the servers."""
    keepers = keepers_in(socket_folder(product.data_dir / "keepers"))
    assert len(keepers) == 1
    os.kill(keepers[0], signal.SIGKILL)
