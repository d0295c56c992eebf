"""Sessions of older servers that outlive the process that opened them: how to keep one, and how to go on with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from .values import Json, Outcome, Request


@dataclass(kw_only=True)
class Keep:
    """The wish that an older server's session may outlive this process.

    `folder` is where keepers have their sockets, `label` the beginning of the socket's name (at most 20
    characters), `token` the fence: only the same or a higher one may take the session over. `orphan_seconds` is
    how long a keeper waits for the next worker.

    `leave` may change while a leg is under way. It says what happens to the session if the leg is stopped before
    it has an outcome (cancelled, or by an exception of a callback): it is left to whoever attaches next and the
    server notices nothing, or the call is cancelled and the session closed.
    """

    folder: Path
    label: str
    token: int
    orphan_seconds: float
    leave: bool = False


@dataclass(frozen=True, kw_only=True)
class LiveSession:
    """A session that another process began: what it reported as SessionInfo, and what became of its prompts.

    `open_prompts` are those without an answer that has surely arrived, with their origins; `answered` are the
    JSON-RPC ids of the others. A keeper knows both by itself.
    """

    negotiated: Mapping[str, Json]
    operation_id: str
    keeper: str | None = None
    session_id: str | None = None
    resumption_token: str | None = None
    open_prompts: tuple[Request, ...] = ()
    answered: frozenset[str | int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class SessionLost:
    """There is nothing to go on with. `lost` says what is gone; `message` is a sentence that says what to do."""

    lost: Literal["keeper", "server"]
    message: str


ResumedOutcome: TypeAlias = Outcome | SessionLost
