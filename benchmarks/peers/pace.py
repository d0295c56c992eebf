"""What every program of a benchmark shares, ours and the peers': moments of runs, people who answer, and the talk with
whoever measures. Nothing but Python, because it runs in the peers' environments too.

A program reads one JSON object per line, {"do": name, ...}, and writes one per line. Times are seconds of the clock
CLOCK_MONOTONIC, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import queue
import random
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TextIO

PATIENCE = 60.0
"""Seconds that a run may take to get anywhere before the program gives up."""

WAITS, GOES_ON, LINE, ENDED = "waits", "goes on", "line", "ended"
"""The moments of a run: its question is stored; it has the answer in hand; its next line is stored; so is its end."""

IN_FLIGHT = 64
"""Runs that are under way at the same time when it is throughput that is measured."""

PEOPLE = 2
"""Threads that start and answer runs when it is throughput that is measured."""

Happened = tuple[str, str, float]
"""A moment, the run's name and the time."""


class Moments:
    """Where the working side notes, from any thread or process, and the people's side waits."""

    def __init__(self) -> None:
        self._happened: queue.SimpleQueue[Happened] = queue.SimpleQueue()

    def note(self, moment: str, run: str, at: float | None = None) -> None:
        self._happened.put((moment, run, time.monotonic() if at is None else at))

    def next(self) -> Happened:
        """The next moment. Raises queue.Empty when nothing happens for too long."""
        return self._happened.get(timeout=PATIENCE)

    def until(self, run: str, last: str) -> dict[str, float]:
        """The moments of one run up to `last`, whichever others come in between."""
        seen: dict[str, float] = {}
        while last not in seen:
            moment, of, at = self.next()
            if of == run:
                seen[moment] = at
        return seen


class Relay:
    """A `Moments` for a process of its own: one line each, written at once."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def note(self, moment: str, run: str) -> None:
        self._out.write(f"{moment}\t{run}\t{time.monotonic():.6f}\n")
        self._out.flush()


def follow(lines: TextIO, moments: Moments) -> None:
    """Hand on what another process relays, until it ends. For a thread."""
    for line in lines:
        moment, run, at = line.rstrip("\n").split("\t")
        moments.note(moment, run, float(at))


def latency(
    count: int,
    start: Callable[[], str],
    answer: Callable[[str], tuple[float, float]],
    moments: Moments,
    *,
    jitter: float,
) -> list[dict[str, float]]:
    """One run after the other: wait for its question, think for up to `jitter` seconds, answer, see it go on.

    `answer` returns when the answering call began and when its commit was done. The jitter keeps the answers from
    falling into step with somebody's polling.
    """
    samples = []
    for _ in range(count):
        run = start()
        moments.until(run, WAITS)
        time.sleep(random.uniform(0.005, 0.005 + jitter))
        called, committed = answer(run)
        seen = moments.until(run, ENDED)
        on, line = seen.get(GOES_ON, seen[LINE]), seen[LINE]
        samples.append(
            {
                "call_commit": (committed - called) * 1000,
                "commit_on": (on - committed) * 1000,
                "commit_line": (line - committed) * 1000,
                "call_line": (line - called) * 1000,
            }
        )
    return samples


def throughput(
    count: int,
    start: Callable[[], str],
    answer: Callable[[str], object],
    moments: Moments,
    *,
    helper: int | None = None,
) -> dict[str, float]:
    """`count` runs from start to end, `IN_FLIGHT` at a time, each answered as soon as it asks.

    People start and answer from `PEOPLE` threads, as requests do. `helper` is the id of a process that has a part in
    it. Gives the seconds, and those of processor time.
    """
    meter = Meter(helper)
    ended = 0
    with ThreadPoolExecutor(PEOPLE) as people:

        def do(act: Callable[..., object], *args: str) -> None:
            people.submit(act, *args).add_done_callback(_ends_if_it_fails)

        for _ in range(min(IN_FLIGHT, count)):
            do(start)
        left = count - min(IN_FLIGHT, count)
        while ended < count:
            moment, run, _ = moments.next()
            if moment == WAITS:
                do(answer, run)
            elif moment == ENDED:
                ended += 1
                if left:
                    left -= 1
                    do(start)
    return meter.read()


def _ends_if_it_fails(done: Future[object]) -> None:
    """A program in which somebody's act failed measures nothing."""
    if error := done.exception():
        traceback.print_exception(error)
        os._exit(1)


class Meter:
    """Seconds since it was made, on the clock and of the processor, of this process and of one that helps it."""

    def __init__(self, helper: int | None = None) -> None:
        self._helper = helper
        self._began, self._spent = time.monotonic(), self._processor()

    def read(self) -> dict[str, float]:
        return {"seconds": time.monotonic() - self._began, "cpu": self._processor() - self._spent}

    def _processor(self) -> float:
        spent = time.process_time()
        if self._helper is not None:
            with open(f"/proc/{self._helper}/stat", encoding="utf-8") as stat:
                fields = stat.read().rpartition(")")[2].split()
            spent += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return spent


def serve(commands: dict[str, Callable[..., Any]]) -> None:
    """Say that we are ready, then carry out one command per line until the input ends."""
    out = sys.stdout
    sys.stdout = sys.stderr  # whatever libraries print is no answer
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(commands[command.pop("do")](**command)), file=out, flush=True)
