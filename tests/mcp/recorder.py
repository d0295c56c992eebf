"""Performs operations and keeps everything that the client reported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from runs.mcp_client import (
    Answer,
    Binding,
    Completed,
    Keep,
    Operation,
    Outcome,
    Refusal,
    Request,
    SessionInfo,
    perform,
)
from tests.mcp.bindings import PATIENCE


@dataclass
class Recorder:
    """Performs operations and keeps what the client reported while it did."""

    answer: Callable[[Request], Awaitable[Answer | Refusal]] | None = None
    journal: list[tuple[str, str, str, Any]] = field(default_factory=list)
    asked: list[Request] = field(default_factory=list)
    progress: list[tuple[float, float | None, str | None]] = field(default_factory=list)
    completed: list[str] = field(default_factory=list)
    sessions: list[SessionInfo] = field(default_factory=list)

    async def perform(
        self,
        binding: Binding,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        kind: Any = "tool",
        saved: Any = None,
        timeout: float = PATIENCE,
        max_bytes: int = 8_000_000,
        report_session: bool = False,
        keep: Keep | None = None,
        **operation: Any,
    ) -> Outcome:
        return await perform(
            binding,
            Operation(kind=kind, name=name, arguments=arguments or {}, **operation),
            saved=saved,
            elicit=self.elicit if self.answer else None,
            journal=self.note,
            progress=self._progress,
            timeout=timeout,
            on_elicitation_complete=self._complete,
            on_session=self._session if report_session or keep else None,
            keep=keep,
            max_bytes=max_bytes,
        )

    async def elicit(self, request: Request) -> Answer | Refusal:
        self.asked.append(request)
        assert self.answer is not None
        return await self.answer(request)

    async def note(self, event: str, jsonrpc_id: str, method: str, payload: Any) -> None:
        self.journal.append((event, jsonrpc_id, method, payload))

    async def _progress(self, value: float, total: float | None, message: str | None) -> None:
        self.progress.append((value, total, message))

    async def _complete(self, elicitation_id: str) -> None:
        self.completed.append(elicitation_id)

    async def _session(self, info: SessionInfo) -> None:
        self.sessions.append(info)


def accepting(**content: Any) -> Callable[[Request], Awaitable[Answer]]:
    async def answer(_: Request) -> Answer:
        return Answer(action="accept", content=content or None)

    return answer


def text_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Completed), outcome
    return str(outcome.raw["content"][0]["text"])
