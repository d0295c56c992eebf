"""What many runs that wait for people cost: memory and CPU of the process, bytes in the database."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import Report, short, table
from benchmarks.installation import Api, Installation
from benchmarks.processes import cpu_percent, resident_mb, wait_for

RUNS = 1000
IDLE_SECONDS = 10.0

_BUSY = "SELECT count(*) FROM runs_run WHERE wake_seq <> seen_seq OR lease_owner IS NOT NULL"
_PARKED = "SELECT count(*) FROM runs_round WHERE status = 'pending'"
_BYTES = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"


def run(folder: Path, scale: float) -> Report:
    """Park `RUNS * scale` runs in an installation of its own under `folder`.

    As many runs that end by themselves come first: what the process still gains with the parked ones is theirs,
    and not the caches that any traffic fills. At the end the same data is opened by a fresh process.
    """
    count = max(1, round(RUNS * scale))
    installation = Installation(folder)
    with installation.up():
        new = _line(installation, "a new installation")
    with installation.up() as api:
        _drive(api, "ends", count)
        ended, size = _line(installation, f"after {count:,} runs that ended"), _bytes(installation)
        memory = resident_mb(installation.pid)
        _drive(api, "asks", count)
        parked = _line(installation, f"after {count:,} more that are parked")
        growth = (resident_mb(installation.pid) - memory) * 1024 / count
        stored = (_bytes(installation) - size) / 1024 / count
    with installation.up():
        again = _line(installation, f"a fresh process with {count:,} parked runs")
    _check(installation, count)
    return Report(
        title=f"{count:,} parked runs",
        table=table(
            ["", "memory, MB", "÷ new", "CPU at rest, % of a core"], _compared([new, ended, parked, again])
        ),
        notes=[
            f"Per parked run: {short(growth)} KB of memory in the process that parked it, {short(stored)} KB in the "
            f"database (run, turn, step, round, events and their indexes). CPU over {IDLE_SECONDS:.0f} s."
        ],
    )


def _drive(api: Api, agent: str, count: int) -> None:
    for _ in range(count):
        api.start(agent)
    wait_for(lambda: api.installation.rows(_BUSY) == [(0,)], f"{count} runs to come to rest", every=0.2)


def _line(installation: Installation, name: str) -> tuple[str, float, float]:
    wait_for(lambda: installation.rows(_BUSY) == [(0,)], "the worker to come to rest", every=0.2)
    idle = cpu_percent(installation.pid, IDLE_SECONDS)
    return name, resident_mb(installation.pid), idle


def _compared(lines: list[tuple[str, float, float]]) -> list[list[str]]:
    """Each line's memory also as a multiple of the first line's."""
    return [
        [name, short(memory), f"{memory / lines[0][1]:.2f}", f"{idle:.1f}"] for name, memory, idle in lines
    ]


def _bytes(installation: Installation) -> int:
    return int(installation.rows(_BYTES)[0][0])


def _check(installation: Installation, count: int) -> None:
    """Figures of runs that are not parked would be figures of something else."""
    (parked,) = installation.rows(_PARKED)[0]
    if parked != count:
        raise RuntimeError(f"{parked} runs are parked; it should be {count}")
