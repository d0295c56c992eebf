"""The keeper's own life: who may attach, what it keeps to itself, and when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from runs.keeper import place
from runs.mcp_client import Completed, StdioBinding
from runs.mcp_client.kept import KeptLink, open_kept
from tests.mcp.bindings import LEGACY, PATIENCE, raw, wait_for
from tests.mcp.killed import keep_in
from tests.mcp.recorder import Recorder
from tests.mcp.test_child_process import is_running
from tests.mcp.test_reattach_stdio import keepers_of

INITIALIZE = b'S{"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {}}\n'


@asynccontextmanager
async def kept(tmp_path: Path, *args: str, **keep: Any) -> AsyncIterator[KeptLink]:
    """A keeper with raw.py under it; the link is detached at the end, so that a test sees what the keeper does."""
    async with open_kept(raw("legacy", *args), keep_in(tmp_path, **keep), max_bytes=100_000) as link:
        try:
            yield link
        finally:
            link.detached = True


class Client:
    """One bare connection to a keeper."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def attach(cls, path: str, token: Any) -> Client:
        client = cls(*await asyncio.open_unix_connection(path))
        client.say(b"A" + json.dumps({"token": token}).encode() + b"\n")
        return client

    def say(self, frame: bytes) -> None:
        self.writer.write(frame)

    async def hear(self) -> bytes:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readline()


async def ended(path: str) -> None:
    """Wait for the keeper to end, on another thread: closing a connection needs this one's loop."""
    await asyncio.to_thread(
        wait_for, lambda: not keepers_of(path) and not Path(path).exists(), "the keeper to end"
    )


async def test_the_socket_is_its_owners_alone_and_secrets_are_in_no_argument_and_no_environment(
    tmp_path: Path,
) -> None:
    binding = raw("legacy", TOKEN="keep me secret")
    async with open_kept(binding, keep_in(tmp_path), max_bytes=100_000) as link:
        assert stat.S_IMODE(os.stat(link.keeper).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(keep_in(tmp_path).folder).st_mode) == 0o700
        (pid,) = keepers_of(link.keeper)
        for file in ("cmdline", "environ"):
            assert b"secret" not in Path(f"/proc/{pid}/{file}").read_bytes()
        assert b"keep me secret" in Path(f"/proc/{link.pid}/environ").read_bytes(), "the server has it"


async def test_a_folder_whose_path_is_too_long_is_replaced_by_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.tempfile, "gettempdir", lambda: "/tmp")
    deep = tmp_path / ("deep" * 30)
    folder = place.socket_folder(deep)
    try:
        assert folder != deep
        assert folder == place.socket_folder(deep), "the same one every time"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        folder.chmod(0o755)
        with pytest.raises(PermissionError, match="not ours alone"):
            place.socket_folder(deep)
    finally:
        folder.rmdir()


async def test_a_newer_client_takes_over_and_an_older_one_is_turned_away(tmp_path: Path) -> None:
    async with kept(tmp_path, token=3) as link:
        older = await Client.attach(link.keeper, 2)
        assert await older.hear() == b'R{"reason": "stale"}\n'
        assert await older.hear() == b"", "and that is all it is told"
        newer = await Client.attach(link.keeper, 4)
        newer.say(INITIALIZE)
        assert (await newer.hear())[:1] == b"L"
        assert link.taken
        for token in (None, True, "9", -1, 4.5):
            wrong = await Client.attach(link.keeper, token)
            assert await wrong.hear() == b'R{"reason": "stale"}\n'
        newer.say(b"C\n")
        await ended(link.keeper)


async def test_what_a_replaced_client_still_says_does_not_reach_the_server(tmp_path: Path) -> None:
    async with kept(tmp_path) as link:
        first = await Client.attach(link.keeper, 2)
        first.say(b"K\n")
        second = await Client.attach(link.keeper, 2)
        second.say(INITIALIZE)
        await second.hear()
        first.say(b"C\n")
        assert await first.hear() == b'R{"reason": "replaced"}\n'
        assert await first.hear() == b""
        second.say(INITIALIZE.replace(b'"i"', b'"j"'))
        assert (await second.hear())[:1] == b"L", "the session goes on"
        second.say(b"C\n")
        await ended(link.keeper)


async def test_a_client_that_goes_without_asking_for_more_takes_the_session_with_it(tmp_path: Path) -> None:
    async with kept(tmp_path) as link:
        pid, path = link.pid, link.keeper
    await ended(path)
    assert not is_running(pid)


async def test_a_session_that_is_to_outlive_its_client_waits_as_long_as_it_was_told(tmp_path: Path) -> None:
    async with kept(tmp_path, orphan_seconds=0.6) as link:
        await link.outlive_us()
        pid, path = link.pid, link.keeper
    assert is_running(pid)
    await ended(path)
    assert not is_running(pid)


async def test_an_operator_ends_a_keeper_with_sigterm_and_its_server_goes_along(tmp_path: Path) -> None:
    async with kept(tmp_path) as link:
        await link.outlive_us()
        pid, path = link.pid, link.keeper
    (keeper,) = keepers_of(path)
    os.kill(keeper, signal.SIGINT)
    os.kill(keeper, signal.SIGHUP)
    assert is_running(pid), "what a terminal sends means nothing to it"
    os.kill(keeper, signal.SIGTERM)
    await ended(path)
    assert not is_running(pid)


async def test_a_server_that_floods_while_nobody_reads_is_made_to_wait(tmp_path: Path) -> None:
    """Its questions are kept up to a bound; after that it cannot write any more, and nothing is lost."""
    flood, progress = tmp_path / "flood.py", tmp_path / "progress"
    progress.touch()
    flood.write_text(
        "import json, sys\n"
        "sys.stdin.readline()\n"
        "for n in range(400):\n"
        "    message = {'jsonrpc': '2.0', 'id': n, 'method': 'elicitation/create', 'params': {'x': 'x' * 9000}}\n"
        "    print(json.dumps(message), flush=True)\n"
        f"    open({str(progress)!r}, 'a').write('.')\n"
        "sys.stdin.read()\n"
    )
    binding = StdioBinding(command=sys.executable, args=(str(flood),))
    async with open_kept(binding, keep_in(tmp_path), max_bytes=20_000) as link:
        path = link.keeper
        first = await Client.attach(path, 2)
        first.say(b"K\n")
        first.say(b'S{"jsonrpc": "2.0", "method": "go"}\n')
        await first.hear()
        first.writer.close()
        link.detached = True
    said, still = 0, 0

    def waits() -> bool:
        """Nothing was written for fifty looks in a row: a process that only waits for its turn goes on sooner."""
        nonlocal said, still
        before, said = said, progress.stat().st_size
        still = still + 1 if 0 < said == before else 0
        return still >= 50

    await asyncio.to_thread(wait_for, waits, "the server to be made to wait")
    assert said < 400
    (keeper,) = keepers_of(path)
    later = await Client.attach(path, 3)
    ids = [json.loads((await later.hear())[1:])["id"] for _ in range(400)]
    assert ids == list(range(400))
    peak = next(
        line for line in Path(f"/proc/{keeper}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    assert int(peak.split()[1]) < 60_000, "kilobytes"
    later.say(b"C\n")
    await ended(path)


async def test_a_modern_server_has_no_keeper_and_an_unknown_or_older_one_has(
    tmp_path: Path, recorder: Recorder
) -> None:
    modern = {"discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
    keep = keep_in(tmp_path)
    for server, saved in (("modern", modern), ("legacy", LEGACY), ("legacy", None), ("legacy-exits", None)):
        done = await recorder.perform(raw(server), "bare", saved=saved, keep=keep)
        assert isinstance(done, Completed), done
    assert [bool(info.keeper) for info in recorder.sessions] == [False, True, True, True]
    assert not list(keep.folder.glob("*.sock")), "and none outlives its call"


@pytest.mark.parametrize("cwd", [None, "inner"], ids=["no folder", "a relative folder"])
async def test_a_kept_server_starts_in_the_folder_that_it_would_start_in_without_a_keeper(
    tmp_path: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, cwd: str | None
) -> None:
    """Also the program and its script may be given relative to that folder."""
    folder = tmp_path / (cwd or "")
    folder.mkdir(exist_ok=True)
    (folder / "python").symlink_to(sys.executable)
    (folder / "where.py").write_text("import os, sys\nsys.exit(os.getcwd())\n")
    monkeypatch.chdir(tmp_path)
    binding = StdioBinding(command="./python", args=("where.py",), cwd=cwd)
    without: Any = await recorder.perform(binding, "x", saved=LEGACY)
    under: Any = await recorder.perform(binding, "x", saved=LEGACY, keep=keep_in(tmp_path))
    assert f"last line was: {folder}" in without.message
    assert under.message == without.message


async def test_a_program_that_is_not_there_fails_under_a_keeper_as_it_does_without(
    tmp_path: Path, recorder: Recorder
) -> None:
    missing = StdioBinding(command="/nonexistent/server")
    without: Any = await recorder.perform(missing, "x", saved=LEGACY)
    under: Any = await recorder.perform(missing, "x", saved=LEGACY, keep=keep_in(tmp_path))
    assert (under.code, under.message, under.sent) == (without.code, without.message, False)


async def test_a_server_that_dies_or_says_too_much_under_a_keeper_fails_as_it_does_without(
    tmp_path: Path, recorder: Recorder
) -> None:
    for tool in ("dies", "endless_line"):
        without: Any = await recorder.perform(raw("legacy"), tool, saved=LEGACY, max_bytes=50_000)
        under: Any = await recorder.perform(
            raw("legacy"), tool, saved=LEGACY, max_bytes=50_000, keep=keep_in(tmp_path)
        )
        assert (under.code, under.message, under.sent) == (without.code, without.message, True)
