"""From a run's pause to its row in an open inbox, and to its card once somebody clicks the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from benchmarks.browser import chromium, clock_gap, now, settle
from benchmarks.figures import Report, Series, ratio_table
from benchmarks.installation import Api, Installation
from benchmarks.yardsticks import yardsticks

SAMPLES = 60
WARM_UP = 3
ROW = "#rows [data-row]"

POST_ROW = "POST that starts the run → row in the inbox"
PAUSE_ROW = "**pause written down → row in the inbox**"
PAUSE_HINT = "· of that: commit and push, until the hint is in the page"
HINT_ROW = "· of that: the page waits 30 ms for more hints, gets and shows the row"
CLICK_CARD = "click on the row → its card"
NAMES = (POST_ROW, PAUSE_ROW, PAUSE_HINT, HINT_ROW, CLICK_CARD)


def run(folder: Path, scale: float) -> Report:
    """Measure in an installation of its own under `folder`, `SAMPLES * scale` times."""
    installation = Installation(folder)
    samples: list[dict[str, float]] = []
    with installation.up() as api, chromium(api) as context, yardsticks(folder, context) as bare:
        page = context.new_page()
        page.goto("/")
        for number in range(WARM_UP + max(1, round(SAMPLES * scale))):
            settle(page)
            if number < WARM_UP:
                _sample(api, page)
                continue
            bare.look()
            samples.append(_sample(api, page))
        gap = clock_gap(page)
    series = [Series(name=name, values=[sample[name] for sample in samples]) for name in NAMES]
    return Report(
        title="Pause → card in the browser",
        table=ratio_table(series, commit=bare.commit, echo=bare.echo),
        notes=[f"The clocks of page and server differed by {gap:+.2f} ms."],
    )


def _sample(api: Api, page: Page) -> dict[str, float]:
    """One run from its start to its card; it is answered afterwards, so that the inbox stays short."""
    page.evaluate("row => bench.arm(row, '')", ROW)
    sent = now()
    run_id = api.start("asks")
    shown: dict[str, Any] = page.evaluate("bench.shown()")
    opening = float(page.evaluate("round => bench.open(round)", shown["round"]))
    paused = api.recorded(run_id)["question.request"].at
    hint = next(one["at"] for one in shown["hints"] if one["type"] == "pause")
    api.answer(shown["round"])
    api.wait_until_ended(run_id)
    return {
        POST_ROW: shown["at"] - sent,
        PAUSE_ROW: shown["at"] - paused,
        PAUSE_HINT: hint - paused,
        HINT_ROW: shown["at"] - hint,
        CLICK_CARD: opening,
    }
