"""Somebody who opens a stream and does not read it costs no more than a little memory."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.live import PATIENCE, Live, live

READERS = 20
MESSAGE = "x" * 20_000
TEXT = MESSAGE * 5
SAID = 80
"""Texts: eight megabytes for each reader."""

LONG = 600
SAYS = [{"say": "{{ message }}" * 5} for _ in range(SAID)]
AGENTS = {"talks": {"steps": [*SAYS, {"sleep": LONG}, {"finish": "never"}]}}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("slow"), AGENTS) as started:
        yield started


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    (pages,) = re.findall(r"^\d+ (\d+)", Path(f"/proc/{pid}/statm").read_text())
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def said(product: Live, run: int) -> list[str]:
    """All texts of the run, read to the last one."""
    texts: list[str] = []
    with product.read(run) as reader:
        for frame in reader.frames():
            if frame["type"] == "text-start":
                texts.append("")
            elif frame["type"] == "text-delta":
                texts[-1] += frame["delta"]
            elif frame["type"] == "text-end" and len(texts) == SAID:
                break
    return texts


def open_without_reading(product: Live, run: int) -> socket.socket:
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.settimeout(PATIENCE)
    opened.connect(("127.0.0.1", product.up.port))
    head = f"GET /api/v2/runs/{run}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {product.key}\r\n\r\n"
    opened.sendall(head.encode())
    assert opened.recv(12) == b"HTTP/1.1 200"
    return opened


def test_who_does_not_read_is_waited_for_and_who_reads_gets_everything(product: Live) -> None:
    run, pid = product.start("talks", message=MESSAGE), product.up.process.pid
    assert len(said(product, run)) == SAID  # by now it has all been said, and what one reader needs is held
    before = resident(pid)
    with ExitStack() as stack:
        for _ in range(READERS):
            stack.enter_context(open_without_reading(product, run))
        texts = said(product, run)
        assert resident(pid) - before < READERS * len(TEXT) * SAID / 4
    assert texts == [TEXT] * SAID
