"""What very many runs that wait for people cost: memory and CPU of every process, bytes stored, the time of a look."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Report, percentile, short, table
from benchmarks.fleet import Fleet, fleet
from benchmarks.installation import Api, Installation
from benchmarks.processes import cpu_seconds, resident_mb

COUNTS = (10_000, 100_000)
IDLE_SECONDS = 10.0
SETTLE_SECONDS = 2.0
"""Before the idle time begins: what a start does is no idling."""
LOOKS = 5
"""Times that a page is fetched; the median counts."""
SWEEPS = 50

HEADER = (
    "with so many parked runs",
    "memory, MB",
    "more than with none",
    "CPU at rest, % of a core",
    "a sweep, ms",
    "inbox page, ms",
    "one hint's GET, ms",
    "KB of database per run",
)


@dataclass(frozen=True, kw_only=True)
class Process:
    """What one process needs beside so many parked runs."""

    name: str
    memory: float
    idle: float


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One number of parked runs, opened by fresh processes."""

    count: int
    processes: Sequence[Process]
    page: float
    row: float
    sweep: float
    stored: float
    """Bytes of the database."""


def run(folder: Path, scale: float) -> Report:
    """None, then each of `COUNTS * scale` parked runs, embedded on SQLite and as a fleet on PostgreSQL."""
    counts = [max(1, round(count * scale)) for count in COUNTS]
    (folder / "sqlite").mkdir()
    embedded = _stages(Installation(folder / "sqlite"), counts)
    (folder / "fleet").mkdir()
    with fleet(folder / "fleet") as installation:
        beyond = _stages(installation, counts)
    return Report(
        title=f"{' and '.join(f'{count:,}' for count in counts)} parked runs",
        table=table(HEADER, [*_rows(embedded), *_rows(beyond)]),
        notes=[
            "The bars: at most 5 MB more of memory than the same process with none, and at rest at most 1 % of a core "
            "with SQLite and 2 % with PostgreSQL. Each line is a fresh process; CPU is read over "
            f"{IDLE_SECONDS:.0f} s. The runs are copies of one that a worker parked at a question. All are in one "
            "account, which is the worst case for its inbox; pages are fetched after the memory was read.",
        ],
    )


def _stages(installation: Installation, counts: Sequence[int]) -> list[Stage]:
    with installation.up() as api:
        first = api.start("asks")
        pause = api.pause_of(first)
    stages = [_stage(installation, pause, 0)]
    for count in counts:
        installation.program("benchmarks.parked_rows", "fill", first, count)
        stages.append(_stage(installation, pause, count))
    return stages


def _stage(installation: Installation, pause: str, count: int) -> Stage:
    """The one run that the others are copied from is in every stage, that of `count` 0 too."""
    sizes = installation.program("benchmarks.parked_rows", "sizes")
    sweeps = installation.program("benchmarks.parked_rows", "sweep", SWEEPS)["sweep"]
    with ExitStack() as stack:
        started = {name: stack.enter_context(process) for name, process in _processes(installation).items()}
        pids = {name: one.pid if isinstance(one, Api) else one for name, one in started.items()}
        idle = _idle(pids)
        processes = [
            Process(name=name, memory=resident_mb(pid), idle=idle[name]) for name, pid in pids.items()
        ]
        api = next(one for one in started.values() if isinstance(one, Api))
        page, row = _look(api, "/"), _look(api, f"/rounds/{pause}/row")
    return Stage(
        count=count,
        processes=processes,
        page=page,
        row=row,
        sweep=percentile(sweeps, 0.5),
        stored=sizes["database"],
    )


def _processes(installation: Installation) -> dict[str, AbstractContextManager[Api | int]]:
    if isinstance(installation, Fleet):
        return {"worker, PostgreSQL": installation.worker(), "web, PostgreSQL": installation.web()}
    return {"up, SQLite": installation.up()}


def _idle(pids: dict[str, int]) -> dict[str, float]:
    """The share of a core that each process uses while nothing happens, all over the same seconds."""
    time.sleep(SETTLE_SECONDS)
    before, started = {name: cpu_seconds(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(IDLE_SECONDS)
    took = time.monotonic() - started
    return {name: 100 * (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}


def _look(api: Api, address: str) -> float:
    took = []
    for _ in range(LOOKS):
        started = time.perf_counter()
        api.client.get(address).raise_for_status()
        took.append((time.perf_counter() - started) * 1000)
    return percentile(took, 0.5)


def _rows(stages: Sequence[Stage]) -> list[list[str]]:
    empty = stages[0]
    return [
        _row(stage, stage.processes[number], empty, alone)
        for number, alone in enumerate(empty.processes)
        for stage in stages
    ]


def _row(stage: Stage, process: Process, empty: Stage, alone: Process) -> list[str]:
    drives, serves = not process.name.startswith("web"), not process.name.startswith("worker")
    kilobytes = (stage.stored - empty.stored) / 1024 / stage.count if stage.count else 0.0
    return [
        f"{process.name}: {stage.count:,}",
        short(process.memory),
        f"{process.memory - alone.memory:+.1f}",
        f"{process.idle:.1f}",
        short(stage.sweep) if drives else "",
        short(stage.page) if serves else "",
        short(stage.row) if serves else "",
        short(kilobytes) if stage.count and drives else "",
    ]
