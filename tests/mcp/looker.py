"""Looks at tasks, and servers that tell of one as a test wants it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from runs.mcp_client import Answer, HttpBinding, Operation, TaskOutcome, answer_to_wire, poll
from tests.mcp.bindings import PATIENCE
from tests.servers.raw_http import RawHttp, Reply, raw_http, result

NAME = answer_to_wire(Answer(action="accept", content={"name": "Ada"}))
TASK = "t-1"


@dataclass
class Looker:
    """Looks at tasks, and keeps what it was told to write down."""

    saved: Any = None
    notes: list[tuple[str, Any]] = field(default_factory=list)
    fails_on: str = ""

    async def look(
        self,
        binding: Any,
        task_id: str = TASK,
        *,
        responses: Mapping[str, Any] | None = None,
        answered: Collection[str] = (),
        timeout: float = PATIENCE,
        max_bytes: int = 1_000_000,
    ) -> TaskOutcome:
        return await poll(
            binding,
            task_id,
            Operation(kind="tool", name="work"),
            saved=self.saved,
            responses=responses or {},
            answered=answered,
            journal=self,
            timeout=timeout,
            max_bytes=max_bytes,
        )

    async def updating(self, keys: Collection[str]) -> None:
        await self._note("updating", sorted(keys))

    async def updated(self, keys: Collection[str]) -> None:
        await self._note("updated", sorted(keys))

    async def finished(self, raw: Mapping[str, Any]) -> None:
        await self._note("finished", raw)

    async def _note(self, what: str, facts: Any) -> None:
        self.notes.append((what, facts))
        if what == self.fails_on:
            raise OSError("the disk is full")


def question(message: str = "Who?") -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


@contextmanager
def telling(*tasks: dict[str, Any] | Reply) -> Iterator[tuple[HttpBinding, RawHttp]]:
    """A server that tells of the task what stands next in `tasks`, the last again and again, and takes any answer."""
    left = list(tasks)

    def answer(message: dict[str, Any], headers: dict[str, str]) -> Reply:
        if message["method"] != "tasks/get":
            return result(message)
        now = left.pop(0) if len(left) > 1 else left[0]
        return now if isinstance(now, Reply) else result(message, **{"taskId": TASK, **now})

    with raw_http(answer) as server:
        yield HttpBinding(url=server.url, allow_private=True), server
