"""Start a first worker, let it get somewhere, kill it, and go on from what it had reported."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runs.mcp_client import (
    Binding,
    FormRequest,
    Keep,
    LiveSession,
    Operation,
    PromptOrigin,
    Request,
    ResumedOutcome,
    UrlRequest,
    resume,
)
from tests.mcp.bindings import PATIENCE, ROOT
from tests.mcp.recorder import Recorder


def keep_in(folder: Path, *, token: int = 1, orphan_seconds: float = 60.0) -> Keep:
    """A wish to keep, with sockets beside the test's own folder, whose path is too long for them."""
    short = folder.parent / f"k{zlib.crc32(folder.name.encode()):08x}"
    return Keep(folder=short, label="test", token=token, orphan_seconds=orphan_seconds)


@dataclasses.dataclass
class FirstWorker:
    """The process and the facts that it printed."""

    process: subprocess.Popen[str]
    facts: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def until(self, wanted: str, count: int = 1) -> dict[str, Any]:
        """Read until a fact of this kind was there `count` times; gives the last of them."""
        assert self.process.stdout is not None
        alarm = threading.Timer(3 * PATIENCE, self.process.kill)
        alarm.start()
        try:
            while (
                len(found := [fact for fact in self.facts if wanted in (*fact, fact.get("journal"))]) < count
            ):
                line = self.process.stdout.readline()
                assert line, f"the first worker ended before {wanted!r}: {self.facts}"
                self.facts.append(json.loads(line))
        finally:
            alarm.cancel()
        return found[-1]

    def kill(self) -> None:
        """SIGKILL: no goodbye to anybody."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def live(self) -> LiveSession:
        """The session as a store would know it: the latest report, the last prompt unanswered, the others answered."""
        session = [fact["session"] for fact in self.facts if "session" in fact][-1]
        prompts = [fact for fact in self.facts if "prompt" in fact]
        last = [_request(prompt) for prompt in prompts[-1:]]
        return LiveSession(
            negotiated=session["negotiated"],
            operation_id=session["jsonrpc_id"],
            keeper=session["keeper"],
            session_id=session["session_id"],
            resumption_token=(prompts and prompts[-1]["token"]) or session["resumption_token"],
            open_prompts=tuple(last),
            answered=frozenset(prompt["prompt"] for prompt in prompts[:-1]),
        )


def _request(prompt: dict[str, Any]) -> Request:
    origin = PromptOrigin(jsonrpc_id=prompt["prompt"], resumption_token=prompt["token"])
    facts: dict[str, Any] = {"key": "elicitation", "message": prompt["message"], "origin": origin}
    if prompt["url"] is not None:
        return UrlRequest(url=prompt["url"], elicitation_id=prompt["elicitation_id"], **facts)
    return FormRequest(schema=prompt["schema"], **facts)


@contextmanager
def first_worker(
    binding: Binding, keep: Keep, name: str, arguments: dict[str, Any], *answers: dict[str, Any]
) -> Iterator[FirstWorker]:
    """A process that makes the call and answers its first prompts with `answers`."""
    told = {
        "binding": dataclasses.asdict(binding),
        "keep": {**dataclasses.asdict(keep), "folder": str(keep.folder)},
        "name": name,
        "arguments": arguments,
        "answers": answers,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.mcp.first_worker"],
        cwd=ROOT,
        env=dict(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(told))
    process.stdin.close()
    worker = FirstWorker(process)
    try:
        yield worker
    finally:
        process.kill()
        process.wait(PATIENCE)
        if process.stdout is not None:
            process.stdout.close()


async def go_on(
    recorder: Recorder,
    live: LiveSession,
    keep: Keep,
    *,
    binding: Binding | None = None,
    timeout: float = PATIENCE,
) -> ResumedOutcome:
    """`resume` with a recorder's callbacks."""
    return await resume(
        binding,
        Operation(kind="tool", name="asks", arguments={}),
        live,
        keep=keep,
        elicit=recorder.elicit,
        journal=recorder.note,
        timeout=timeout,
    )
