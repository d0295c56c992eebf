"""The two sides of the comparison: the reference in its process, and a store of ours in this one."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from runs.managed_input import (
    ElicitationResponse,
    FormElicitationRequest,
    ManagedInputStore,
    PendingElicitationRound,
    UrlElicitationRequest,
)
from tests.peers.managed_input_calls import Calls

PEER = Path(__file__).resolve().parents[1] / "peers" / "managed_input_peer.py"
ANSWER_SECONDS = 30
TYPES: dict[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (ElicitationResponse, FormElicitationRequest, PendingElicitationRound, UrlElicitationRequest)
}


class Side(Protocol):
    """Something that answers the calls of `tests.peers.managed_input_calls`."""

    def answer(self, call: str, args: dict[str, Any]) -> dict[str, Any]: ...


class Reference:
    """The peer's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def answer(self, call: str, args: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps({"call": call, "args": args}), file=self.process.stdin, flush=True)
        ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_SECONDS)
        assert ready, f"The peer did not answer {call} within {ANSWER_SECONDS} seconds."
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def reference(python: str) -> Iterator[Reference]:
    """The reference, run by the Python of its environment; its process ends with the block."""
    with subprocess.Popen(
        [python, str(PEER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Reference(process)
        finally:
            process.kill()


class Ours:
    """A store of ours. What goes over the process boundary on the other side takes the same way through JSON here."""

    def __init__(self, new_store: Callable[[Callable[[], datetime]], ManagedInputStore]) -> None:
        self.calls = Calls(TYPES, new_store)

    def answer(self, call: str, args: dict[str, Any]) -> dict[str, Any]:
        request = json.loads(json.dumps({"call": call, "args": args}))
        answer: dict[str, Any] = json.loads(json.dumps(self.calls.answer(request)))
        return answer
