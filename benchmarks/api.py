"""Requests per second of reading a run with an API key, beside those of a bare DRF view under daphne.

All are one process with one event loop. The bar is half of what the bare view does as anybody would serve it, with
Django's own handler: what the product saves by keeping its threads is its own doing, and so is what it spends. A second
bare view under the product's handler shows what of the difference is the product's work alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Report, percentile, short, table
from benchmarks.installation import Installation
from benchmarks.processes import PATIENCE, cpu_seconds, free_port, listening

BARE = ("-m", "benchmarks.bare_view_server")

BLOCKS = 20
"""The servers take turns, block by block, so that noise meets all alike."""
BLOCK = 200
"""Requests of one block."""
CONNECTIONS = 8
"""Clients that read at the same time, each on a connection that it keeps."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is read, and the process (`pid`) that serves it."""

    port: int
    pid: int
    path: str
    authorization: str = ""

    @property
    def request(self) -> bytes:
        lines = [f"GET {self.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Accept: application/json"]
        if self.authorization:
            lines.append(f"Authorization: {self.authorization}")
        return "\r\n".join([*lines, "", ""]).encode()


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block: requests per second, and the milliseconds of processor time that its server spent on each."""

    rate: float
    cpu: float


def run(folder: Path, scale: float) -> Report:
    """Read `BLOCKS * scale` blocks from each, the run being parked at a question, as runs are while they are polled."""
    installation, port, own_port = Installation(folder), free_port(), free_port()
    with (
        installation.up() as api,
        listening([*BARE, str(port)], port, folder / "bare.log") as bare,
        listening([*BARE, str(own_port), "lasting"], own_port, folder / "own.log") as own,
    ):
        run_id = api.start("asks")
        api.pause_of(run_id)
        path = f"/api/v2/runs/{run_id}"
        targets = (
            Target(port=port, pid=bare.pid, path=path),
            Target(port=own_port, pid=own.pid, path=path),
            Target(
                port=installation.port,
                pid=installation.pid,
                path=path,
                authorization=f"Bearer {installation.known['key']}",
            ),
        )
        measured = asyncio.run(_alternate(targets, max(3, round(BLOCKS * scale))))
    return _report(*measured)


async def _alternate(targets: Sequence[Target], blocks: int) -> list[list[Block]]:
    measured: list[list[Block]] = [[] for _ in targets]
    for target in targets:
        await _block(target)  # fills the caches that any traffic fills
    for _ in range(blocks):
        for target, found in zip(targets, measured, strict=True):
            found.append(await _block(target))
    return measured


async def _block(target: Target) -> Block:
    each = BLOCK // CONNECTIONS
    spent, started = cpu_seconds(target.pid), time.perf_counter()
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as clients:
        for _ in range(CONNECTIONS):
            clients.create_task(_read(target, each))
    took, done = time.perf_counter() - started, each * CONNECTIONS
    return Block(rate=done / took, cpu=(cpu_seconds(target.pid) - spent) * 1000 / done)


async def _read(target: Target, times: int) -> None:
    """Read again and again. Plain sockets, because a client library would cost more than the bare view does.

    Raises RuntimeError for any answer but 200.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
    try:
        for _ in range(times):
            writer.write(target.request)
            head = await reader.readuntil(b"\r\n\r\n")
            body = await _body(reader, head.lower())
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(f"{target.path} was answered with {head!r} {body!r}")
    finally:
        writer.close()


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """What follows a head in small letters: as long as it says, or in chunks, the last of which is empty."""
    _, told, length = head.partition(b"content-length:")
    return await (reader.readexactly(int(length.split()[0])) if told else reader.readuntil(b"0\r\n\r\n"))


def _report(bare: Sequence[Block], own: Sequence[Block], product: Sequence[Block]) -> Report:
    rows = [
        _row("bare DRF view, Django's handler", bare, bare),
        _row("bare DRF view, the product's handler", own, bare),
        _row("**GET /api/v2/runs/{id}, with a key**", product, bare),
    ]
    return Report(
        title="Reading a run",
        table=table(["medians of the blocks", "requests/s", "÷ bare", "CPU, ms", "÷ bare", "requests"], rows),
        notes=[
            f"{CONNECTIONS} clients at a time on connections that they keep; one daphne process each. The bar is 0.5 "
            f"of the requests per second of the bare view under Django's handler."
        ],
    )


def _row(name: str, blocks: Sequence[Block], bare: Sequence[Block]) -> list[str]:
    rate, cpu = _medians(blocks)
    bare_rate, bare_cpu = _medians(bare)
    requests = f"{len(blocks) * BLOCK:,}"
    return [name, short(rate), f"{rate / bare_rate:.2f}", short(cpu), f"{cpu / bare_cpu:.2f}", requests]


def _medians(blocks: Sequence[Block]) -> tuple[float, float]:
    return percentile([one.rate for one in blocks], 0.5), percentile([one.cpu for one in blocks], 0.5)
