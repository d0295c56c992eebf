"""What a program submits: servers of its own, an agent, and answers that it gives in advance.

Frozen values that refuse what cannot be used as soon as they are made, with ModelValidationError. Plain module, apart
from the value types of `runs.managed_input`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from runs.canonical import NotJson, canonical_json
from runs.errors import ModelValidationError
from runs.harnesses import get_harness
from runs.managed_input.values import ElicitationResponse
from runs.planned import PlannedMatch

HumanInput = Literal["fail", "managed"]
"""Whether an execution may wait for people (C1)."""

MAX_PLANNED = 100
"""Predefined answers of one submission."""


@dataclass(frozen=True)
class StdioServer:
    """An MCP server that this program starts as a child process.

    `env` is the whole environment of the child; a value `env:NAME` is taken from the kit's `env`. `cwd` is the
    folder that it starts in. `trusted` makes its annotations count; False leaves what the store knows.
    """

    name: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | os.PathLike[str] | None = None
    trusted: bool = False

    def __post_init__(self) -> None:
        _check_text("A server's name", self.name)
        _check_text("The command of a server", self.command)
        if not is_list(self.args) or not all(isinstance(arg, str) for arg in self.args):
            raise ModelValidationError(
                "The arguments of a server are a list of texts, one for each argument."
            )
        if self.cwd is not None and not isinstance(self.cwd, str | os.PathLike):
            raise ModelValidationError("The cwd of a server is the path of a folder, or None.")
        check_texts("The environment of a server", self.env)
        object.__setattr__(self, "args", tuple(self.args))
        object.__setattr__(self, "env", dict(self.env))


@dataclass(frozen=True)
class HttpServer:
    """An MCP server at a URL. `headers` may hold credentials; a value `env:NAME` is taken from the kit's `env`."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trusted: bool = False

    def __post_init__(self) -> None:
        _check_text("A server's name", self.name)
        _check_text("The URL of a server", self.url)
        _check_url(self.url)
        check_texts("The headers of a server", self.headers)
        object.__setattr__(self, "headers", dict(self.headers))


Server: TypeAlias = StdioServer | HttpServer | str
"""A server of the program's own, or the name of one that the store has already."""


@dataclass(frozen=True, kw_only=True)
class PlannedElicitation:
    """One answer given in advance, for the first request that fits and that no earlier answer took.

    `message` is compared literally, except that `*`, `?` and `[...]` are wildcards; `key` is the server's own key of
    the request, `server` and `operation` name who asks (`operation` is the name of the tool or prompt, or the
    resource's URI), `schema_digest` is `runs.handles.schema_digest` of the form. What is None fits everything.
    """

    response: ElicitationResponse
    message: str | None = None
    key: str | None = None
    server: str | None = None
    operation: str | None = None
    schema_digest: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.response, ElicitationResponse):
            raise ModelValidationError("A predefined answer is an ElicitationResponse.")
        for name in get_args(PlannedMatch):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str) or not value):
                raise ModelValidationError(f"{name} of a predefined answer is a text, or None for any.")


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """One execution to be: the agent, its message, and what it may use.

    `definition` is what the harness reads, for `playbook` a playbook. `servers` are what the agent has; `tools` limits
    it to "server" or "server:tool" and approves calls to them (C48), None permits all. `mode` is the permission mode
    (None: autonomous), `elicitations` are answers in advance, `metadata` and `user_id` belong to the caller.
    """

    prompt: str
    definition: Mapping[str, Any]
    harness: str = "playbook"
    name: str = "Python agent"
    instructions: str = ""
    servers: Sequence[Server] = ()
    tools: Sequence[str] | None = None
    elicitations: Sequence[PlannedElicitation] = ()
    mode: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    user_id: str | None = None

    def __post_init__(self) -> None:
        _check_text("A prompt", self.prompt)
        check_agent(self.harness, self.definition)
        check_naming(self.name, self.instructions)
        _check_selection(self.tools)
        check_servers(self.servers)
        _check_plan(self.elicitations)
        check_json("metadata", self.metadata)
        for what, value in (("mode", self.mode), ("user_id", self.user_id)):
            if value is not None:
                _check_text(what, value)

    @property
    def targets(self) -> frozenset[str]:
        """Every "server:name" that the definition names literally."""
        return get_harness(self.harness).targets(self.definition)


def check_agent(harness: str, definition: Mapping[str, Any]) -> None:
    """Raise ModelValidationError for an unknown harness or a definition with mistakes, each with its place."""
    _check_text("The harness of an agent", harness)
    check_json("definition", definition)
    mistakes = list(get_harness(harness).validate(definition))
    if mistakes:
        raise ModelValidationError(
            f"The definition has mistakes: {'; '.join(mistakes[:5])}", details={"mistakes": mistakes}
        )


def check_human_input(human_input: object, spec: AgentSpec) -> HumanInput:
    """The submission's word on people, if it is one and fits the spec (C1, C3)."""
    if human_input not in get_args(HumanInput):
        raise ModelValidationError('human_input is "fail" or "managed".')
    if human_input == "managed" and spec.elicitations:
        raise ModelValidationError(
            'Predefined answers go with human_input="fail": either people answer, or the plan does. Leave one out.'
        )
    return "managed" if human_input == "managed" else "fail"


def check_json(what: str, value: object) -> None:
    """Raise ModelValidationError unless `value` is a mapping that JSON can hold."""
    if not isinstance(value, Mapping):
        raise ModelValidationError(f"{what} is a mapping, not {type(value).__name__}.")
    try:
        canonical_json(value)
    except NotJson as error:
        raise ModelValidationError(f"{what} must be JSON: {error.message}") from error


def _check_selection(tools: Sequence[str] | None) -> None:
    if tools is None:
        return
    if not is_list(tools) or not all(_is_text(target) for target in tools):
        raise ModelValidationError('tools is a list such as ["server:tool"], or None for no limit.')
    if len(set(tools)) != len(tools):
        raise ModelValidationError("The tool selection names a tool twice. Name each once.")


def check_servers(servers: Sequence[Server]) -> None:
    """Raise ModelValidationError unless these are servers, each with a name of its own."""
    if not is_list(servers) or not all(isinstance(one, StdioServer | HttpServer | str) for one in servers):
        raise ModelValidationError("servers is a list of StdioServer, HttpServer or names of known servers.")
    names = [name_of(server) for server in servers]
    if len(set(names)) != len(names):
        raise ModelValidationError("Two servers of one agent have the same name. Give each its own.")


def _check_plan(elicitations: Sequence[PlannedElicitation]) -> None:
    if not is_list(elicitations) or not all(isinstance(one, PlannedElicitation) for one in elicitations):
        raise ModelValidationError("elicitations is a list of PlannedElicitation.")
    if len(elicitations) > MAX_PLANNED:
        raise ModelValidationError(
            f"At most {MAX_PLANNED} predefined answers; these are {len(elicitations)}."
        )


def name_of(server: Server) -> str:
    return server if isinstance(server, str) else server.name


def check_naming(name: object, instructions: object) -> None:
    """Raise ModelValidationError unless these are the name and the instructions of an agent."""
    _check_text("An agent's name", name)
    if instructions != "":
        _check_text("An agent's instructions", instructions, blank=True)


def check_texts(what: str, value: object) -> None:
    """Raise ModelValidationError unless `value` is a mapping of texts to texts."""
    if not isinstance(value, Mapping) or not all(
        isinstance(key, str) and isinstance(inner, str) for key, inner in value.items()
    ):
        raise ModelValidationError(f"{what} is a mapping of texts to texts.")


def is_list(value: object) -> bool:
    """Whether this holds several things; a text and a mapping hold one."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _check_text(what: str, value: object, *, blank: bool = False) -> None:
    if not isinstance(value, str) or not (blank or value.strip()):
        raise ModelValidationError(f"{what} is a text with at least one character.")
    if not _is_text(value):
        raise ModelValidationError(f"{what} has a character that cannot be stored: NUL, or half a surrogate.")


def _is_text(value: object) -> bool:
    """Whether this is a text, not empty, that every database and protocol can hold."""
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ModelValidationError("The URL of a server begins with http:// or https:// and names a host.")
