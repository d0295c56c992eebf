"""From the POST of an answer to its commit, to the run's next line, and to that line on an open run page."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from benchmarks.browser import chromium, clock_gap, now, settle
from benchmarks.figures import Report, Series, ratio_table
from benchmarks.installation import Api, Installation
from benchmarks.prepare import NEXT_LINE
from benchmarks.processes import PATIENCE
from benchmarks.yardsticks import yardsticks

SAMPLES = 60
WARM_UP = 3
LOOK_EVERY = 0.0005
"""Seconds between two looks for a commit; the error of every time that a commit was seen at."""

POST_COMMIT = "POST of the answer → committed"
POST_LINE = "**POST of the answer → next line of the run committed**"
POST_REPLY = "POST of the answer → its HTTP response"
POST_SHOWN = "POST of the answer → line on the run page"
VIEW = "· view: route, session, checks, until the answer is written down"
COMMIT = "· commit: rest of the transaction, until another connection sees it"
WAKE = "· wake: claim the run, load its journal, until the question is closed"
NEXT = "· next: commit, load, ask the harness, until the line is written down"
LINE = "· commit of the line"
PUSH = "· push: until the hint is in the page"
SHOW = "· page: collects hints for 150 ms, gets and shows the line"
NAMES = (POST_COMMIT, POST_LINE, POST_REPLY, POST_SHOWN, VIEW, COMMIT, WAKE, NEXT, LINE, PUSH, SHOW)


class Commits(threading.Thread):
    """Watches a run's events from another connection: `seen[type]` is when each was first there."""

    def __init__(self, installation: Installation, run_id: int, *, last: str) -> None:
        super().__init__(daemon=True)
        self.installation, self.run_id, self.last = installation, run_id, last
        self.seen: dict[str, float] = {}
        self.ready = threading.Event()

    def run(self) -> None:
        until = time.monotonic() + PATIENCE
        with closing(self.installation.reader()) as reader:
            while self.last not in self.seen and time.monotonic() < until:
                found = reader.execute("SELECT type FROM runs_event WHERE run_id = ?", (self.run_id,))
                for (type_,) in found.fetchall():
                    self.seen.setdefault(type_, now())
                self.ready.set()
                time.sleep(LOOK_EVERY)


def run(folder: Path, scale: float) -> Report:
    """Measure in an installation of its own under `folder`, `SAMPLES * scale` times."""
    installation = Installation(folder)
    samples: list[dict[str, float]] = []
    with installation.up() as api, chromium(api) as context, yardsticks(folder, context) as bare:
        page = context.new_page()
        for number in range(WARM_UP + max(1, round(SAMPLES * scale))):
            run_id = api.start("asks")
            pause = api.pause_of(run_id)
            page.goto(f"/runs/{run_id}")
            settle(page)
            if number < WARM_UP:
                _sample(api, page, run_id, pause)
                continue
            bare.look()
            samples.append(_sample(api, page, run_id, pause))
        gap = clock_gap(page)
    series = [Series(name=name, values=[sample[name] for sample in samples]) for name in NAMES]
    return Report(
        title="Answer → next line of the run",
        table=ratio_table(series, commit=bare.commit, echo=bare.echo),
        notes=[
            f"The clocks of page and server differed by {gap:+.2f} ms; a commit is seen up to "
            f"{LOOK_EVERY * 1000:.1f} ms late. The parts (·) add up to the line on the page, sample by sample."
        ],
    )


def _sample(api: Api, page: Page, run_id: int, pause: str) -> dict[str, float]:
    page.evaluate("text => bench.arm('#timeline li', text)", NEXT_LINE)
    commits = Commits(api.installation, run_id, last="agent.say")
    commits.start()
    commits.ready.wait(PATIENCE)
    sent = now()
    api.answer(pause)
    replied = now()
    shown: dict[str, Any] = page.evaluate("bench.shown()")
    commits.join(PATIENCE)
    events, seen = api.recorded(run_id), commits.seen
    answer, closed, line = (events[type_] for type_ in ("question.response", "question.settled", "agent.say"))
    hint = min(one["at"] for one in shown["hints"] if one["type"] == "run" and one["seq"] >= line.seq)
    return {
        POST_COMMIT: seen["question.response"] - sent,
        POST_LINE: seen["agent.say"] - sent,
        POST_REPLY: replied - sent,
        POST_SHOWN: shown["at"] - sent,
        VIEW: answer.at - sent,
        COMMIT: seen["question.response"] - answer.at,
        WAKE: closed.at - seen["question.response"],
        NEXT: line.at - closed.at,
        LINE: seen["agent.say"] - line.at,
        PUSH: hint - seen["agent.say"],
        SHOW: shown["at"] - hint,
    }
