"""Many programs that poll and many that read streams, of runs that pause and resume, on one process of the product."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.api.live import ASK, PATIENCE, QUESTION, Live, live
from tests.api.test_stream_slow_reader import resident
from tests.requirements import repeats

READERS = POLLERS = min(200, repeats())
"""Of each: in CI the two hundred that are promised."""
PER_RUN = 4
RUNS = READERS // PER_RUN

INTERVAL = 2.0
"""Seconds between two looks of the SDK's `wait()` (m8tes-http 5.1)."""

TOGETHER = 4.0 + RUNS / 3
"""Seconds that every run sleeps first, so that the streams are open at once before the first of them pauses."""

ENDS_WITHIN = 85.0
"""Seconds that all of it may take."""

GROWTH = 40_000_000 + (READERS + POLLERS) * 200_000
"""Bytes that the process may gain. A connection with its request, a thread's stack while it is served and ten events of
a look are well below 200 KB; 40 MB are for the threads' arenas, caches and what the allocator keeps. Two hundred of
each took 80 MB when this was measured. One copy of its run's history too many for each reader, or a thread or a
connection of the database kept by each, is beyond that."""

STEPS = [{"sleep": TOGETHER}, ASK, {"say": "On it."}, {"finish": "Done."}]
AGENTS = {"asks": {"steps": STEPS}, "warms": {"steps": STEPS[1:]}}
PAUSES = 1


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("load"), AGENTS) as started:
        yield started


@dataclass
class Watched:
    """One run, and what those who watch it have seen."""

    id: int
    answered: asyncio.Condition = field(default_factory=asyncio.Condition)
    answers: int = 0
    ends_polled: list[str] = field(default_factory=list)
    ends_read: list[str] = field(default_factory=list)

    def has(self, answers: int) -> bool:
        return self.answers >= answers


class Crowd:
    """Everybody who talks to the product; every client keeps its connection, as one process with the SDK does."""

    def __init__(self, product: Live) -> None:
        self._product = product
        self._reading = 0
        self.most_reading = 0

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{self._product.up.port}/api/v2/",
            headers={"Authorization": f"Bearer {self._product.key}"},
            timeout=PATIENCE,
            verify=False,  # no TLS here, and reading the list of authorities is dear
        )

    async def watch(self, runs: list[Watched]) -> None:
        """Until each of the runs has ended for each who watches it."""
        async with asyncio.timeout(ENDS_WITHIN), asyncio.TaskGroup() as tasks:
            for run in runs:
                for number in range(PER_RUN):
                    tasks.create_task(self.read(run))
                    tasks.create_task(self.poll(run, decides=number == 0))

    async def poll(self, run: Watched, *, decides: bool) -> None:
        """What `wait()` does: look, decide what is open, look again after a while."""
        async with self.client() as client:
            while True:
                seen = (await sent(client, "GET", f"runs/{run.id}"))["status"]
                if seen not in ("running", "awaiting_approval"):
                    run.ends_polled.append(seen)
                    return
                if decides and seen == "awaiting_approval":
                    await self._decide(client, run)
                await asyncio.sleep(INTERVAL)

    async def _decide(self, client: httpx2.AsyncClient, run: Watched) -> None:
        requests = await sent(client, "GET", f"runs/{run.id}/permissions")
        for request in requests:
            if request["status"] == "pending":
                body = {
                    "request_id": request["request_id"],
                    "answers": {QUESTION["question"]: "enterprise"},
                }
                await sent(client, "POST", f"runs/{run.id}/answer", json=body)
                async with run.answered:
                    run.answers += 1
                    run.answered.notify_all()

    async def read(self, run: Watched) -> None:
        """Follow a run; a stream ends at a pause, and its reader joins again once somebody has decided."""
        async with self.client() as client:
            for answers in range(PAUSES + 1):
                async with run.answered:
                    await run.answered.wait_for(partial(run.has, answers))
                last = await self._last_frame(client, run)
                if last["type"] != "awaiting_approval":
                    run.ends_read.append(last.get("completion_state", last["type"]))
                    return

    async def _last_frame(self, client: httpx2.AsyncClient, run: Watched) -> Any:
        last = None
        async with client.stream("GET", f"runs/{run.id}/stream") as response:
            assert response.status_code == 200, await response.aread()
            self._reading += 1
            self.most_reading = max(self.most_reading, self._reading)
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    last = json.loads(line.removeprefix("data: "))
            self._reading -= 1
        assert last is not None, f"an empty stream of run {run.id}"
        return last


async def sent(client: httpx2.AsyncClient, method: str, path: str, **more: Any) -> Any:
    """The answer to a request, which has to be a good one at the first try."""
    answer = await client.request(method, path, **more)
    assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json()


def started(product: Live, agent: str, count: int) -> list[Watched]:
    body = {
        "agent_id": product.agents()[agent],
        "message": "go",
        "human_in_the_loop": True,
        "stream": False,
    }
    with product.client() as client:
        answers = [client.post("runs/", json=body) for _ in range(count)]
    assert {answer.status_code for answer in answers} == {201}
    return [Watched(answer.json()["id"]) for answer in answers]


def errors_logged(product: Live) -> str:
    return product.up.text() if "Traceback" in product.up.text() else ""


def followed(product: Live, agent: str, count: int) -> Crowd:
    """Runs from their start to their end with everybody who watches them; each has seen each end."""
    crowd, runs = Crowd(product), started(product, agent, count)
    asyncio.run(crowd.watch(runs))
    for run in runs:
        assert run.answers == PAUSES
        assert run.ends_polled == ["completed"] * PER_RUN
        assert run.ends_read == ["completed"] * PER_RUN
    return crowd


@pytest.mark.timeout(200)
def test_everybody_sees_the_end_of_a_run_and_the_process_stays_small(product: Live) -> None:
    followed(product, "warms", 1)  # imports and caches that any traffic fills
    before = resident(product.up.process.pid)

    crowd = followed(product, "asks", RUNS)

    assert crowd.most_reading > READERS / 2  # all of them, unless a busy machine is late with the first joins
    assert resident(product.up.process.pid) - before < GROWTH
    assert errors_logged(product) == ""
