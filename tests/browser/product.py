"""The product as people meet it: `manage.py up` in a process of its own, and chromium in front of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.mcp.bindings import ROOT, free_port, listens, wait_for
from tests.requirements import chromium_path

CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
START = 120.0
"""Seconds for a first start on a busy machine: migrations, demo, four password hashes."""

PATIENCE = 60_000
"""Milliseconds that a page may take to show what a test waits for; a server's start alone takes seconds."""


class Product:
    """One demo installation; it can be stopped, killed and started again on the same data."""

    def __init__(self, data_dir: Path, **env: str) -> None:
        self.data_dir, self.port = data_dir, free_port()
        self.env = {
            **os.environ,
            "M3_DATA_DIR": str(data_dir),
            "M3_DEMO": "1",
            "M3_LOG_LEVEL": "WARNING",
            **env,
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        log = (self.data_dir / "log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(self.port)],
            cwd=ROOT,
            env=self.env,
            stdout=log,
            stderr=log,
        )
        child = self.process
        wait_for(
            lambda: listens(self.port) or child.poll() is not None, "the product to listen", patience=START
        )
        assert child.poll() is None, self.log()

    def stop(self, how: int = signal.SIGINT) -> int:
        """End it as Ctrl-C does, or as `kill -9` does; gives its exit code."""
        assert self.process is not None
        self.process.send_signal(how)
        code = self.process.wait(30)
        self.process = None
        return code

    def log(self) -> str:
        return (self.data_dir / "log").read_text()

    def password(self, name: str) -> str:
        passwords: dict[str, str] = json.loads((self.data_dir / "demo_logins.json").read_text())
        return passwords[name]


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_ARGS)
        yield browser
        browser.close()


class Person:
    """Somebody at a browser of their own. Every error that a page logs is kept; a test ends by finding none."""

    def __init__(self, browser: Browser, product: Product, name: str, **context: object) -> None:
        self.product, self.name = product, name
        self.scripted = bool(context.get("java_script_enabled", True))
        self.context = browser.new_context(base_url=product.url, **context)  # type: ignore[arg-type]
        self.context.set_default_timeout(PATIENCE)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.sign_in()

    def _note(self, kind: str, text: str) -> None:
        """Chromium logs a refused answer (422) and a lost race (409) as errors; those are part of the job."""
        if kind == "error" and not re.search(r"status of (409|422)", text):
            self.errors.append(text)

    def sign_in(self) -> None:
        self.page.goto("/login")
        self.page.get_by_label("User name").fill(self.name)
        self.page.get_by_label("Password").fill(self.product.password(self.name))
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("navigation", name="Main")).to_be_visible()

    def start_run(self, agent: str, message: str, *, mode: str | None = None, user: str = "") -> int:
        """Through the page, as a person does; gives the run's id."""
        self.page.goto("/runs/start")
        self.page.get_by_label("Agent", exact=True).select_option(label=agent)
        self.page.get_by_label("Message", exact=True).fill(message)
        if mode:
            self.page.locator(f"input[name=mode][value={mode}]").check()
        if user:
            self.page.get_by_label("End user").fill(user)
        self.page.get_by_role("button", name="Start").click()
        self.page.wait_for_url(re.compile(r"/runs/\d+$"))
        return int(self.page.url.rsplit("/", 1)[1])

    def open_card_of(self, run: int, kind: str) -> None:
        """From the run page to its waiting card, once it is there."""
        self.page.goto(f"/runs/{run}")
        link = self.page.locator("#run-head .waiting a").first
        expect(link).to_be_visible(timeout=PATIENCE)
        link.click()
        expect(self.page.locator("#round-card")).to_have_attribute("data-kind", kind, timeout=PATIENCE)
        self.settle()

    def settle(self) -> None:
        """A new card ignores clicks for half a second (R17); a person takes that long to read it."""
        if self.scripted:
            expect(self.page.locator("#round-card[data-ready]")).to_be_visible()

    def press(self, value: str) -> None:
        """Decide the open card with the button of this value, and see its receipt."""
        self.settle()
        card = self.page.locator("#round-card")
        round_id = card.get_attribute("data-round")
        card.locator(f"button[value='{value}']").click()
        expect(self.page.locator(f"#receipts [data-receipt='{round_id}']")).to_be_visible(timeout=PATIENCE)

    def expect_end(self, run: int, word: str, text: str | None = None) -> None:
        self.page.goto(f"/runs/{run}")
        expect(self.page.locator("main")).to_contain_text(word, timeout=PATIENCE)
        if text:
            expect(self.page.locator("main")).to_contain_text(text, timeout=PATIENCE)

    def close(self) -> None:
        self.context.close()
