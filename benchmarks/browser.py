"""A real chromium, headless, with `watch.js` in every page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, Page, sync_playwright

from benchmarks.installation import Api
from tests.requirements import find_chromium

WATCH = Path(__file__).with_name("watch.js")
WIDE = {"width": 1280, "height": 800}
"""Wide enough for the inbox to show list and card side by side."""


@contextmanager
def chromium(api: Api) -> Iterator[BrowserContext]:
    """A browser in which the caller of `api` is signed in."""
    path = find_chromium()
    if path is None:
        raise SystemExit(
            "This benchmark needs a chromium (Debian: `apt-get install chromium-headless-shell`)."
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        context = browser.new_context(base_url=api.installation.url, viewport=WIDE)  # type: ignore[arg-type]
        context.add_cookies([{"name": "sessionid", "value": api.session, "url": api.installation.url}])
        context.add_init_script(path=WATCH)
        yield context
        browser.close()


def settle(page: Page) -> None:
    """Until the page has its socket and nothing has moved for a while."""
    page.evaluate("bench.settled()")


def clock_gap(page: Page) -> float:
    """How far the page's clock is ahead of ours, in milliseconds, as the quickest of some looks tells."""
    looks = []
    for _ in range(20):
        asked = now()
        theirs = float(page.evaluate("bench.now()"))
        answered = now()
        looks.append((answered - asked, theirs - (asked + answered) / 2))
    return min(looks)[1]


def now() -> float:
    """Milliseconds since 1970, on the clock that page and product use too."""
    return time.time() * 1000
