"""The Tasks extension on the wire (SEP-2663, `io.modelcontextprotocol/tasks`): its words, its bounds, its shapes.

A server may answer `tools/call` with a task instead of a result. Everything in a task was written by that server
and is bounded here; what is wrong beyond repair raises UnacceptableError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mcp.client.extension import ClaimContext, ResultClaim
from mcp_types import CallToolResult, Result

from .mapping import UnacceptableError, clip, requests_from_wire
from .values import Json, Request, TaskStarted

EXTENSION = "io.modelcontextprotocol/tasks"
GET, UPDATE, CANCEL = "tasks/get", "tasks/update", "tasks/cancel"
TASK = "task"
"""The `resultType` of an answer that is a task."""

MAX_TASK_ID = 1000
MAX_STATUS_TEXT = 500
POLL_AFTER_LEAST, POLL_AFTER_MOST, POLL_AFTER_DEFAULT = 0.2, 60.0, 1.0
"""Seconds between two looks at a task, whatever its server wishes."""

TTL_MOST = 10 * 365 * 86_400.0
"""Seconds; a promise to keep a task for longer is taken for this."""

WORKING, INPUT_REQUIRED, COMPLETED = "working", "input_required", "completed"
CANCELLED, FAILED = "cancelled", "failed"


class _TaskResult(Result):
    """What the SDK is told of the answer; we read the raw result ourselves."""

    result_type: Literal["task"] = "task"


async def _never(claimed: _TaskResult, context: ClaimContext) -> CallToolResult:
    raise NotImplementedError("A task is followed by whoever stored its id.")


CLAIMS: Mapping[str, tuple[ResultClaim[Any], ...]] = {
    EXTENSION: (ResultClaim(result_type=TASK, model=_TaskResult, resolve=_never),)
}
"""Bound to a claim, the SDK declares the extension on the modern protocol alone, as the extension wants it."""


def started(raw: Mapping[str, Json], negotiated: Mapping[str, Json]) -> TaskStarted:
    """The task that a call was answered with. Raises UnacceptableError if it cannot be followed."""
    task_id = raw.get("taskId")
    if not isinstance(task_id, str) or not task_id or len(task_id) > MAX_TASK_ID or not task_id.isprintable():
        raise UnacceptableError("The server answered with a task whose id cannot be used.")
    return TaskStarted(
        task_id=task_id,
        poll_after=poll_after(raw),
        ttl=ttl(raw),
        message=status_message(raw),
        negotiated=negotiated,
    )


def checked_status(raw: Mapping[str, Json], task_id: str) -> str:
    """The status word of an answer to `tasks/get`. Raises UnacceptableError if it is not about this task."""
    status = raw.get("status")
    if raw.get("taskId") != task_id:
        raise UnacceptableError("The server was asked about one task and answered about another.")
    if status not in (WORKING, INPUT_REQUIRED, COMPLETED, CANCELLED, FAILED):
        raise UnacceptableError(
            f"The server reports a status of its task that does not exist (“{clip(status, 60)}”)."
        )
    return str(status)


def outstanding(raw: Mapping[str, Json]) -> dict[str, Request]:
    """What a task that needs input asks now; nothing at all is possible. Raises UnacceptableError."""
    return requests_from_wire(raw) if raw.get("inputRequests") else {}


def poll_after(raw: Mapping[str, Json]) -> float:
    """Seconds until the next look: the server's wish, clamped."""
    wish = _milliseconds(raw.get("pollIntervalMs"))
    return POLL_AFTER_DEFAULT if wish is None else min(max(wish, POLL_AFTER_LEAST), POLL_AFTER_MOST)


def ttl(raw: Mapping[str, Json]) -> float | None:
    """Seconds from its creation for which the server keeps the task; None if it does not say."""
    promised = _milliseconds(raw.get("ttlMs"))
    return None if promised is None else min(promised, TTL_MOST)


def status_message(raw: Mapping[str, Json]) -> str:
    return clip(raw.get("statusMessage"), MAX_STATUS_TEXT)


def _milliseconds(value: Json) -> float | None:
    """Seconds from a number of milliseconds; None for what is no number that makes sense."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return value / 1000
