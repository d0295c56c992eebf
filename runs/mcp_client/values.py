"""What goes into the MCP client and what comes out of it: plain frozen values, no session, no Django.

A later layer stores them. Everything in a request, a definition or a result was written by a server and is
untrusted: it is bounded here in size and shape, and whoever shows it shows it as text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from runs.canonical import digest

Json: TypeAlias = Any
"""A value that `json.dumps` accepts."""

MAX_RESULT_BYTES = 8_000_000
"""Largest single message accepted from a server, in bytes."""

MAX_TOOLS = 1000
"""Most definitions of one kind (tools, prompts, resources) that one inspection keeps."""

MAX_DEFINITION_BYTES = 256 * 1024
"""Largest single tool definition or form schema, in bytes of JSON."""

MAX_REQUESTS_PER_ROUND = 50
"""Most keyed requests that one `input_required` round may hold."""

ELICITATION_KEY = "elicitation"
"""The key of a request whose protocol gives it none (C9)."""


# --- where a server is ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StdioBinding:
    """A server that we start as a child process.

    `env` is the child's whole environment, except that it also gets our `PATH` if it names none. `tasks` says that
    what it starts as a task outlives the child, so that it may be invited to answer with one.
    """

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    tasks: bool = False


@dataclass(frozen=True, kw_only=True)
class HttpBinding:
    """A streamable HTTP server. `allow_private` permits private and loopback addresses and plain http."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow_private: bool = False


Binding: TypeAlias = StdioBinding | HttpBinding


def identity(binding: Binding) -> str:
    """Digest of what the server *is* (command and args, or URL); policies pin it (design section 7).

    Environment, working directory and headers are left out: a rotated credential is the same server.
    """
    if isinstance(binding, StdioBinding):
        return digest({"stdio": [binding.command, *binding.args]})
    return digest({"http": binding.url})


# --- what a server offers ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool as its server describes it. `digest` covers name, description and both schemas."""

    name: str
    title: str | None
    description: str
    input_schema: Mapping[str, Json]
    output_schema: Mapping[str, Json] | None
    annotations: Mapping[str, Json]
    digest: str


@dataclass(frozen=True, kw_only=True)
class PromptDefinition:
    """A prompt. `arguments` are `{"name", "description"?, "required"?}` as the server sent them."""

    name: str
    title: str | None
    description: str
    arguments: tuple[Mapping[str, Json], ...]


@dataclass(frozen=True, kw_only=True)
class ResourceDefinition:
    """A resource, or with `is_template` a URI template (RFC 6570) for resources."""

    uri: str
    name: str
    title: str | None
    description: str
    mime_type: str | None
    is_template: bool


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """What one look at a server found. `negotiated` is what to save and hand back as `saved` next time.

    `problems` are sentences about definitions that were left out; they never hide the good ones.
    """

    negotiated: Mapping[str, Json]
    protocol_version: str
    server_name: str
    server_version: str
    instructions: str
    tools: tuple[ToolDefinition, ...]
    prompts: tuple[PromptDefinition, ...]
    resources: tuple[ResourceDefinition, ...]
    problems: tuple[str, ...]


# --- what we ask of it ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation on a server, or the next leg of it.

    `name` is the tool's or prompt's name, or the resource's URI. `input_responses` are this round's answers
    as they go over the wire (`answer_to_wire`) and `request_state` the server's own state, verbatim; both
    only on a retry. `definition`, if known, spares a listing and lets the result be checked.
    """

    kind: Literal["tool", "prompt", "resource"]
    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    input_responses: Mapping[str, Mapping[str, Json]] | None = None
    request_state: str | None = None
    definition: ToolDefinition | None = None


# --- what it asks of us -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PromptOrigin:
    """Where a prompt on an open session came from: what a process that attaches later needs to answer it.

    `jsonrpc_id` is the server's id of it. `resumption_token` is a place in the HTTP stream at or before it, if
    the server keeps one.
    """

    jsonrpc_id: str | int
    resumption_token: str | None = None


@dataclass(frozen=True, kw_only=True)
class FormRequest:
    """The server asks for a form. `schema` is its JSON Schema, verbatim; `message` is untrusted text.

    `origin` is there for a prompt on an open session, and is no part of what is asked.
    """

    key: str
    message: str
    schema: Mapping[str, Json]
    meta: Mapping[str, Json] = field(default_factory=dict)
    origin: PromptOrigin | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class UrlRequest:
    """The server asks that a person opens `url` (http or https). `elicitation_id` is absent in 2026-07-28."""

    key: str
    message: str
    url: str
    elicitation_id: str | None = None
    meta: Mapping[str, Json] = field(default_factory=dict)
    origin: PromptOrigin | None = field(default=None, compare=False)


Request: TypeAlias = FormRequest | UrlRequest


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A person's answer. `content` only with accept, and never for a URL."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Json] | None = None


@dataclass(frozen=True)
class Refusal:
    """Nobody may be asked: the server gets a protocol error with this text, not a made-up answer (A3, A5)."""

    message: str


# --- what came of it --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Completed:
    """The server gave its result. `raw` is that result verbatim.

    `problem` says in a sentence how the result breaks the protocol or the tool's own output schema; the
    result stands all the same, because the operation has happened.
    """

    raw: Mapping[str, Json]
    is_error: bool
    negotiated: Mapping[str, Json]
    problem: str | None = None


@dataclass(frozen=True, kw_only=True)
class InputRequired:
    """The server returned `input_required` (2026-07-28). The connection is closed; nothing is held.

    Empty `requests` mean that only `request_state` came: the caller waits a moment and sends it back.
    """

    requests: Mapping[str, Request]
    request_state: str | None
    negotiated: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class UrlsRequired:
    """Error -32042 (2025-11-25): once a person has dealt with the URLs, call again from the first leg."""

    requests: Mapping[str, UrlRequest]
    negotiated: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class StateRefused:
    """The server does not take its own `request_state` back: call again from the first leg."""

    message: str


@dataclass(frozen=True, kw_only=True)
class TaskStarted:
    """The server answered a tool call with a task (SEP-2663): it is at work, and `poll` follows it by its id.

    `poll_after` are the seconds to wait before the next look, clamped. `ttl` are the seconds from the task's
    creation for which the server promises to know it, None without a promise. `message` is its own word on how
    far it is.
    """

    task_id: str
    poll_after: float
    ttl: float | None
    message: str
    negotiated: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Working:
    """The task goes on; the fields are those of TaskStarted."""

    poll_after: float
    ttl: float | None
    message: str
    negotiated: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Unanswered:
    """A look at a task came to nothing and changed nothing: look again later. `message` says what was wrong."""

    message: str


class FailureCode(StrEnum):
    """Why a leg failed. The values are stable and may be stored."""

    UNREACHABLE = "unreachable"
    SERVER_DIED = "server_died"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol_error"
    HTTP_STATUS = "http_status"
    REFUSED_BY_SERVER = "refused_by_server"
    TOO_LARGE = "too_large"
    UNSUPPORTED_REQUEST = "unsupported_request"
    TASK_FAILED = "task_failed"
    TASK_CANCELLED = "task_cancelled"
    TASK_GONE = "task_gone"


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The leg ended without a result. `message` is a sentence that says what to do next.

    `sent` is False only if the operation surely never reached the server. `answered` is True if the server
    replied to it, so that nothing is still in flight; sent and not answered means: outcome unknown.
    """

    code: FailureCode
    message: str
    sent: bool
    answered: bool = False

    @property
    def outcome_unknown(self) -> bool:
        """Whether the operation may have happened, or may yet happen, without our knowing."""
        return self.sent and not self.answered


Outcome: TypeAlias = Completed | InputRequired | UrlsRequired | StateRefused | TaskStarted | Failed
TaskOutcome: TypeAlias = Completed | InputRequired | Working | Unanswered | Failed


@dataclass(frozen=True, kw_only=True)
class SessionInfo:
    """What another process would need to attach to a live legacy session (C35).

    Reported when the operation is about to be sent, and once more with the first resumption token; later ones
    come with the prompts. `pid` is the child's, `keeper` the socket of its keeper, `session_id` the HTTP session's.
    """

    negotiated: Mapping[str, Json]
    jsonrpc_id: str
    session_id: str | None = None
    resumption_token: str | None = None
    pid: int | None = None
    keeper: str | None = None


Elicit: TypeAlias = Callable[[Request], Awaitable[Answer | Refusal]]
JournalEvent: TypeAlias = Literal["sent", "result", "error"]
Journal: TypeAlias = Callable[[JournalEvent, str, str, Mapping[str, Json]], Awaitable[None]]
Progress: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
OnElicitationComplete: TypeAlias = Callable[[str], Awaitable[None]]
OnSession: TypeAlias = Callable[[SessionInfo], Awaitable[None]]
