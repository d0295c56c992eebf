"""The journal as values: what a harness reads and what it may propose next.

Plain module. `Harness.next_steps(journal)` is a pure function of a `Journal`; the worker stores each proposal
as a Step row with its `path`, and its `result` once it is known, so any worker can go on (design section 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

Json = Any
"""A value that `json.dumps` accepts."""


class StepKind(StrEnum):
    CALL = "call"
    PROMPT = "prompt"
    READ = "read"
    SAY = "say"
    ASK = "ask"
    PLAN = "plan"
    SLEEP = "sleep"
    MESSAGE = "message"
    RUN = "run"
    FINISH = "finish"


MCP_KINDS = frozenset({StepKind.CALL, StepKind.PROMPT, StepKind.READ})
"""Steps that are an operation on an MCP server and therefore have a ToolCall."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One journalled step of a turn.

    `path` is unique within its turn and chosen by the harness. `bind` is the name under which later steps see
    `result`. `result` is None while the step is open. For call, prompt, read and run it is
    `{"status": "done" | "failed" | "denied" | "cancelled", "result": ..., "error": text | None}`, for ask
    `{"status": "done" | ..., "answers": {question text: label | [labels] | other text}}`, for plan
    `{"status": "approved" | "revise" | ..., "text": text | None}`, for say and finish `{"status": "done"}`.
    """

    path: str
    kind: StepKind
    bind: str | None = None
    required: bool = False
    result: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class TurnJournal:
    """One turn: the message that opened it, the definition frozen for it, and its steps in order."""

    index: int
    message: str
    definition: Mapping[str, Json]
    entries: Sequence[Entry] = ()


@dataclass(frozen=True, kw_only=True)
class Journal:
    """All turns of a run so far, oldest first; the last one is the turn to advance."""

    turns: Sequence[TurnJournal]
    user_id: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)


MAX_PATH: Final = 200
MAX_BIND: Final = 100
MAX_SERVER_NAME: Final = 60
MAX_NAME: Final = 2000
"""Characters that the journal keeps of a path, of a bound name, and of the two parts of a target."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a harness wants next, under a `path` that no entry of the turn has yet.

    Raises ValueError for names that the journal could not keep or find again: a harness refuses them first.
    """

    path: str
    bind: str | None = None
    required: bool = False

    def __post_init__(self) -> None:
        _check_name("path", self.path, MAX_PATH)
        _check_name("bind", self.bind or "", MAX_BIND)


@dataclass(frozen=True, kw_only=True)
class _Targeted(Proposal):
    target: str

    def __post_init__(self) -> None:
        super().__post_init__()
        server, _, name = self.target.partition(":")
        _check_name("server in target", server, MAX_SERVER_NAME)
        _check_name("name in target", name, MAX_NAME)


@dataclass(frozen=True, kw_only=True)
class Call(_Targeted):
    """Call the tool `target` ("server:tool", split at the first colon) with `args`."""

    args: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Prompt(_Targeted):
    """Get the prompt `target` ("server:name"); prompt arguments are strings."""

    args: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Read(_Targeted):
    """Read the resource `target` ("server:uri")."""


@dataclass(frozen=True, kw_only=True)
class Ask(Proposal):
    """Ask a person 1-4 questions of the m8tes shape
    `{"question", "header", "multiSelect", "options": [{"label", "description"?}]}`."""

    questions: Sequence[Mapping[str, Json]]
    blocking: bool = True


@dataclass(frozen=True, kw_only=True)
class ProposePlan(Proposal):
    """Put a plan before a person; `revision` counts from 0, `feedback` is the text of the last revise."""

    text: str
    revision: int = 0
    feedback: str | None = None


@dataclass(frozen=True, kw_only=True)
class Say(Proposal):
    """A line of the agent for the timeline."""

    text: str


@dataclass(frozen=True, kw_only=True)
class RunAgent(Proposal):
    """Start a child run of the agent with this name and wait for its end."""

    agent: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Sleep(Proposal):
    """Go on after this many seconds; the run is parked meanwhile."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Finish(Proposal):
    """End the turn as completed with this output."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Fail(Proposal):
    """End the turn as failed; `text` says why and where in the definition."""

    text: str


def _check_name(what: str, text: str, most: int) -> None:
    if len(text) > most or not text.isprintable():
        raise ValueError(f"The {what} of a step has at most {most:,} printable characters.")


class Harness(Protocol):
    """Decides the next steps from the journal alone."""

    def validate(self, definition: Mapping[str, Json]) -> Sequence[str]:
        """Mistakes in a definition as "path: what is wrong" lines; empty if it may be saved."""

    def targets(self, definition: Mapping[str, Json]) -> frozenset[str]:
        """Every "server:name" that the definition names literally, for checks at save time."""

    def next_steps(self, journal: Journal) -> Sequence[Proposal]:
        """Proposals that can start now. Empty means: wait for the open entries."""
