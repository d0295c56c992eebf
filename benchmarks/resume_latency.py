"""From the commit of an answer to the next line of its run, on our engines and on what others offer for the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Report, Series, pair, short, table
from benchmarks.programs import Contender, contenders, stage

SAMPLES = 100
ROUNDS = 2
"""Every program is started so many times, in turns, so that noise meets all alike."""
WARM_UP = 3

Samples = dict[str, list[float]]

NOTES = (
    "One run at a time: it starts, asks, is answered after a random while (as long as the engine's polling, so that "
    "answers fall anywhere between two looks), goes on. 'goes on' is the moment when the run has the answer in hand, "
    "'line' the commit of its next line; both are counted from the return of the answer's commit, 'call → line' from "
    "the beginning of the answering call. ÷ DBOS compares 'commit → line' with DBOS on the same database: on SQLite "
    "with its defaults, on PostgreSQL with its `recv` that waits in memory.",
    "What each does: M3 Web stores the decision (who, by which way, its receipt, its event in the hash chain, the "
    "run's wake) and goes on under a fenced lease. DBOS stores a message, which `recv` journals; no lease, no fence, "
    "no row of who decided. django-tasks-db enqueues a task with a bare row of the answer; no journal, no lease. "
    "LangGraph is called with the answer in the same process: no queue, no lease, no row of the decision, so there is "
    "only 'call → line'. All commit durably: SQLite with synchronous=FULL (WAL, or the file's default mode for DBOS "
    "with its defaults), PostgreSQL with fsync. On PostgreSQL the answer comes from another process than the worker's, "
    "except for LangGraph.",
    "How long an answer takes over HTTP into another browser, with the parts, is `answer_to_line`.",
)


def run(folder: Path, scale: float) -> Report:
    """Measure `SAMPLES * scale` runs of every contender, fewer of those that poll once a second."""
    found: dict[Contender, Samples] = {}
    with stage(folder) as on:
        for contender in [one for _ in range(ROUNDS) for one in contenders(on) if one.latency]:
            print(f"  {contender.label}", file=sys.stderr, flush=True)
            count = max(2, round(SAMPLES * scale / ROUNDS / contender.costs))
            with on.program(contender) as program:
                program.ask("latency", count=WARM_UP, jitter=0.0)
                samples = program.ask("latency", count=count, jitter=contender.jitter)
            kept = found.setdefault(contender, {})
            for sample in samples:
                for name, value in sample.items():
                    kept.setdefault(name, []).append(value)
    return Report(title="Commit of an answer → next line of the run", table=_table(found), notes=NOTES)


def _table(found: dict[Contender, Samples]) -> str:
    header = ["p50 / p95, ms", "commit → goes on", "commit → line", "÷ DBOS", "call → line", "samples"]
    return table(header, list(_rows(found)))


def _rows(found: dict[Contender, Samples]) -> Iterator[list[str]]:
    yardsticks = {
        contender.store: Series(name="", values=samples["commit_line"]).p50
        for contender, samples in reversed(found.items())
        if contender.name.startswith("DBOS")
    }
    for contender, samples in found.items():
        line = _series(samples, "commit_line")
        yard = yardsticks.get(contender.store)
        yield [
            contender.label,
            _shown(samples, "commit_on"),
            _shown(samples, "commit_line"),
            short(line.p50 / yard) if line and yard else "",
            _shown(samples, "call_line"),
            str(len(samples["call_line"])),
        ]


def _series(samples: Samples, name: str) -> Series | None:
    return Series(name=name, values=samples[name]) if name in samples else None


def _shown(samples: Samples, name: str) -> str:
    series = _series(samples, name)
    return pair(series.p50, series.p95) if series else ""
