"""A decision in one browser, the card closed in 500 others; beside a bare send to a Channels group of as many."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Report, Series, percentile, short, table
from benchmarks.fleet import fleet
from benchmarks.installation import Api, Installation
from benchmarks.open_pages import COLLECTS, SPREAD, Page, Socket, now
from benchmarks.processes import PATIENCE, cpu_seconds, free_port, listening

PAGES = 500
DECISIONS = 8
BARE = ("-m", "benchmarks.group_server")
HINT = json.dumps(
    {"type": "pause", "pause_id": "0" * 32, "run_id": 1, "status": "pending", "pending_count": 1}
)
"""What the bare group hands on has the size of what the product pushes."""


def run(folder: Path, scale: float) -> Report:
    """As a fleet (two web processes and a worker, on PostgreSQL and Redis), and embedded; pages by `scale`."""
    pages = max(4, round(PAGES * scale))
    (folder / "fleet").mkdir()
    with fleet(folder / "fleet") as installation, ExitStack() as stack:
        stack.enter_context(installation.worker())
        webs = [stack.enter_context(installation.web()) for _ in range(2)]
        bare = _bare(folder, 2, pages, installation.env["REDIS_URL"])
        beyond = [bare, *asyncio.run(_decisions(webs, pages))]
    (folder / "sqlite").mkdir()
    with Installation(folder / "sqlite").up() as api:
        embedded = [_bare(folder, 1, pages), *asyncio.run(_decisions([api], pages))]
    rows = [_row("2 × web, Redis", one, beyond[0]) for one in beyond]
    rows += [_row("up, in memory", one, embedded[0]) for one in embedded]
    return Report(
        title=f"A decision and {pages:,} open inboxes",
        table=table(["", "p50, ms", "p95, ms", "slowest, ms", "p50 ÷ bare", "samples"], rows),
        notes=[
            f"With the first hint a row goes and its card closes. After {COLLECTS * 1000:.0f} ms and up to "
            f"{SPREAD * 1000:.0f} more, so that not all do so at once, a page fetches the counts. Pages are clients in "
            "one process beside the servers. CPU is of all web processes together, per decision and the start of its "
            "run, whose row every page fetches too."
        ],
    )


async def _decisions(webs: Sequence[Api], count: int) -> list[Series]:
    """Answer one pause after the other at the first web process; the pages are spread over all."""
    cookie = f"sessionid={webs[0].session}"
    ports = [int(web.client.base_url.port or 0) for web in webs]
    pages = [Page(ports[number % len(ports)], cookie) for number in range(count)]
    hints, counted, spent, gets = [], [], [], []
    for page in pages:
        page.watch("")
        await page.open()
    for _ in range(DECISIONS):
        run_id = await asyncio.to_thread(webs[0].start, "asks")
        pause = await asyncio.to_thread(webs[0].pause_of, run_id)
        await asyncio.sleep(1.0)  # pages have fetched the new row
        for page in pages:
            page.watch(pause)
        before, sent = sum(cpu_seconds(web.pid) for web in webs), now()
        await asyncio.to_thread(webs[0].answer, pause)
        async with asyncio.timeout(PATIENCE):
            ended = await asyncio.gather(*(page.counted for page in pages))
        await asyncio.sleep(1.0)  # and whatever hints follow the first
        hints += [page.hinted - sent for page in pages]
        counted += [at - sent for at in ended]
        spent.append((sum(cpu_seconds(web.pid) for web in webs) - before) * 1000)
        gets.append(sum(page.gets for page in pages) / count)
    for page in pages:
        page.close()
    return [
        Series(name="**POST of the decision → hint in the pages, card closed**", values=hints),
        Series(name="POST of the decision → counts fetched", values=counted),
        Series(name="· CPU of the web processes", values=spent),
        Series(name="· GETs of one page, a number", values=gets),
    ]


def _bare(folder: Path, processes: int, members: int, redis_url: str = "") -> Series:
    """A word said by one member until each has it: the same number of processes, members and rounds."""
    with ExitStack() as stack:
        ports = [free_port() for _ in range(processes)]
        for port in ports:
            args = [*BARE, str(port), *([redis_url] if redis_url else [])]
            stack.enter_context(listening(args, port, folder / f"group-{port}.log"))
        return Series(name="bare group send → every member", values=asyncio.run(_sends(ports, members)))


async def _sends(ports: Sequence[int], members: int) -> list[float]:
    heard: list[float] = []

    def hear(text: str, at: float) -> None:
        if text == HINT:
            heard.append(at)

    sockets = [Socket(ports[number % len(ports)], "/", "none", hear) for number in range(members)]
    for socket in sockets:
        await socket.open()
    took: list[float] = []
    for _ in range(DECISIONS):
        heard.clear()
        sent = now()
        sockets[0].say(HINT)
        await _until(lambda: len(heard) == members)
        took += [at - sent for at in heard]
    for socket in sockets:
        socket.close()
    return took


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.005)


def _row(where: str, one: Series, bare: Series) -> list[str]:
    slowest = percentile(one.values, 1)
    return [
        f"{where}: {one.name}",
        *(short(value) for value in (one.p50, one.p95, slowest)),
        "" if one.name.startswith("·") else short(one.p50 / bare.p50),
        f"{len(one.values):,}",
    ]
