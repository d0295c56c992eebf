"""Tiny runs with one pause that is answered at once: how many per second, and where our time goes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Report, short, table
from benchmarks.peers.pace import IN_FLIGHT, PEOPLE
from benchmarks.programs import QUEUE_POLL, Contender, contenders, stage

RUNS = 2000
PEER_SHARE = 0.3
"""The peers are measured on so many of the runs; a rate does not need all of them."""
ROUNDS = 2
WARM_UP = 10

Found = dict[Contender, list[tuple[int, float, float]]]
"""Runs, seconds and processor seconds of each round."""


def run(folder: Path, scale: float) -> Report:
    """Drive `RUNS * scale` runs on each of our engines, and `PEER_SHARE` of that on each peer."""
    found: Found = {}
    costs: dict[Contender, Any] = {}
    with stage(folder) as on:
        for contender in [one for _ in range(ROUNDS) for one in contenders(on) if one.throughput]:
            print(f"  {contender.label}", file=sys.stderr, flush=True)
            share = 1.0 if _is_ours(contender) else PEER_SHARE
            count = max(5, round(RUNS * share * scale / ROUNDS))
            with on.program(contender) as program:
                program.ask("throughput", count=WARM_UP)
                measured = program.ask("throughput", count=count)
                found.setdefault(contender, []).append((count, measured["seconds"], measured["cpu"]))
            if _is_ours(contender) and contender not in costs:
                with on.program(contender, "costs") as program:
                    costs[contender] = program.ask("costs", count=max(5, round(100 * scale)))
    return Report(
        title=f"{RUNS * scale:g} tiny runs, each with one pause that is answered at once",
        table=table(["", "runs/s", "÷ DBOS", "CPU, ms/run", "runs"], list(_rows(found))),
        notes=[
            f"Start, question, answer, next line, end; {IN_FLIGHT} runs are under way at any time, started and "
            f"answered from {PEOPLE} threads (LangGraph: one after the other, which is its fastest). CPU is that of "
            "the program's processes, without the database server's. What each engine does and leaves out is said at "
            "`resume_latency`; fsync is on everywhere. ÷ DBOS compares with the DBOS whose runs wait for their answer. "
            "With 'a workflow per wake' none waits: what asks and what goes on are two workflows from a queue that is "
            f"looked into every {QUEUE_POLL * 1000:g} ms, which takes many at once; that a run waits, for what, and "
            "that it goes on once only is stored nowhere.",
            *(_where(contender, cost) for contender, cost in costs.items()),
        ],
    )


def _is_ours(contender: Contender) -> bool:
    return contender.name.startswith("M3 Web")


def _rows(found: Found) -> Iterator[list[str]]:
    rates = {
        one: sum(n for n, _, _ in rounds) / sum(s for _, s, _ in rounds) for one, rounds in found.items()
    }
    # The DBOS whose runs wait, as ours do: the one whose latency is measured, too.
    yardsticks = {
        one.store: rate for one, rate in rates.items() if one.name.startswith("DBOS") and one.latency
    }
    for contender, rounds in found.items():
        runs, rate = sum(n for n, _, _ in rounds), rates[contender]
        cpu = sum(spent for _, _, spent in rounds) * 1000 / runs
        yard = yardsticks.get(contender.store)
        yield [contender.label, short(rate), short(rate / yard) if yard else "", short(cpu), str(runs)]


def _where(contender: Contender, cost: dict[str, Any]) -> str:
    parts = ", ".join(
        f"{name} {short(part['ms'])} ms ({part['statements']} statements, {part['commits']} commits)"
        for name, part in cost["parts"].items()
    )
    return (
        f"Where the time of one run goes with nothing else under way, {contender.label}: {parts}. Of the "
        f"{short(cost['ms'])} ms in sum, {short(cost['sql'])} ms are spent in the database's driver and "
        f"{short(cost['commit'])} ms in commits; the rest is ours and Django's."
    )
