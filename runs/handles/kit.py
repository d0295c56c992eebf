"""The kits and their agents: where a program begins. Two faces of `runs.handles.core`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from runs.errors import ModelValidationError
from runs.handles.core import Core
from runs.handles.handle import AsyncExecutionHandle, ExecutionHandle
from runs.handles.specs import (
    AgentSpec,
    HttpServer,
    HumanInput,
    PlannedElicitation,
    Server,
    StdioServer,
    check_agent,
    check_naming,
    is_list,
)
from runs.handles.stores import BaseStore


class SubmitOptions(TypedDict, total=False):
    """What `agent.submit` takes beside the prompt; see `AgentSpec` for what each means."""

    server: Server | Sequence[Server]
    """One server, or several."""
    tools: Sequence[str] | None
    elicitations: Sequence[PlannedElicitation]
    mode: str | None
    metadata: Mapping[str, Any]
    user_id: str | None


@dataclass(frozen=True, kw_only=True)
class _Template:
    """An agent as `kit.agents` takes it."""

    definition: Mapping[str, Any]
    harness: str = "playbook"
    name: str = AgentSpec.name
    instructions: str = ""

    def spec(self, prompt: str, options: SubmitOptions) -> AgentSpec:
        rest = {key: value for key, value in options.items() if key != "server"}
        return AgentSpec(prompt=prompt, servers=_listed(options.get("server", ())), **vars(self), **rest)  # type: ignore[arg-type]


class Agent:
    """An agent that can be given messages. Nothing of it is stored before the first."""

    def __init__(self, core: Core, template: _Template) -> None:
        self._core = core
        self._template = template

    @property
    def name(self) -> str:
        return self._template.name

    def submit(
        self, prompt: str, *, human_input: HumanInput = "fail", **options: Unpack[SubmitOptions]
    ) -> ExecutionHandle:
        """Start an execution with this message. Raises ModelValidationError as `MCPTestKit.submit` does."""
        spec = self._template.spec(prompt, options)
        return ExecutionHandle(self._core, self._core.thread.call(self._core.submit(spec, human_input)))


class AsyncAgent:
    """`Agent` for a program with a loop of its own."""

    def __init__(self, core: Core, template: _Template) -> None:
        self._core = core
        self._template = template

    @property
    def name(self) -> str:
        return self._template.name

    async def submit(
        self, prompt: str, *, human_input: HumanInput = "fail", **options: Unpack[SubmitOptions]
    ) -> AsyncExecutionHandle:
        """See `Agent.submit`."""
        spec = self._template.spec(prompt, options)
        work = self._core.submit(spec, human_input)
        return AsyncExecutionHandle(self._core, await self._core.thread.acall(work))


class MCPTestKit:
    """Runs agents on MCP servers from a program. Close it, or use it in a `with` statement.

    `store` keeps the executions; without one a file that is gone after `close` does, and `human_input="managed"` is
    refused. `env` is where `env:NAME` values of servers come from, the program's environment if None. `servers` are
    those that unfinished executions of an earlier program need; what is submitted here brings its own.
    """

    def __init__(
        self,
        *,
        store: BaseStore | None = None,
        env: Mapping[str, str] | None = None,
        servers: Sequence[Server] = (),
    ) -> None:
        self._core = Core(store, env, servers)

    def agents(self, definitions: Iterable[Mapping[str, Any]]) -> list[Agent]:
        """Agents from mappings with `definition` and, if wanted, `harness`, `name` and `instructions`.

        Raises ModelValidationError for an unknown harness, a definition with mistakes, or another key.
        """
        return [Agent(self._core, template) for template in _templates(definitions)]

    def submit(self, spec: AgentSpec, human_input: HumanInput = "fail") -> ExecutionHandle:
        """Start an execution. With "managed" it waits for answers, with "fail" a pause that nobody foresaw ends it.

        Raises ModelValidationError for another word (C1), another spec than an AgentSpec (C2), "managed" beside
        predefined answers (C3) or without a store that lasts (C4), and for servers, tools or modes that cannot be used.
        """
        return ExecutionHandle(self._core, self._core.thread.call(self._core.submit(spec, human_input)))

    def execution(self, execution_id: str) -> ExecutionHandle:
        """The handle of an execution that this program or an earlier one started.

        Raises NotFound, and ModelValidationError for an unfinished one whose servers nobody offers now.
        """
        return ExecutionHandle(self._core, self._core.thread.call(self._core.find(execution_id)))

    def close(self) -> None:
        """Stop. What is unfinished waits in the store for the next kit; calls that are under way are cancelled."""
        self._core.close()

    def __enter__(self) -> Self:
        try:
            self._core.thread.call(self._core.ready())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncMCPTestKit:
    """`MCPTestKit` for a program with a loop of its own: `async with`, and methods that are awaited."""

    def __init__(
        self,
        *,
        store: BaseStore | None = None,
        env: Mapping[str, str] | None = None,
        servers: Sequence[Server] = (),
    ) -> None:
        self._core = Core(store, env, servers)

    def agents(self, definitions: Iterable[Mapping[str, Any]]) -> list[AsyncAgent]:
        """See `MCPTestKit.agents`; not awaited, since nothing is stored yet."""
        return [AsyncAgent(self._core, template) for template in _templates(definitions)]

    async def submit(self, spec: AgentSpec, *, human_input: HumanInput = "fail") -> AsyncExecutionHandle:
        """See `MCPTestKit.submit`."""
        work = self._core.submit(spec, human_input)
        return AsyncExecutionHandle(self._core, await self._core.thread.acall(work))

    async def execution(self, execution_id: str) -> AsyncExecutionHandle:
        """See `MCPTestKit.execution`."""
        return AsyncExecutionHandle(self._core, await self._core.thread.acall(self._core.find(execution_id)))

    async def close(self) -> None:
        """See `MCPTestKit.close`."""
        await asyncio.to_thread(self._core.close)

    async def __aenter__(self) -> Self:
        try:
            await self._core.thread.acall(self._core.ready())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _templates(definitions: Iterable[Mapping[str, Any]]) -> list[_Template]:
    if isinstance(definitions, str | bytes | Mapping) or not isinstance(definitions, Iterable):
        raise ModelValidationError("agents takes a list of mappings, one for each agent.")
    return [_template(definition) for definition in definitions]


def _template(given: Mapping[str, Any]) -> _Template:
    if not isinstance(given, Mapping):
        raise ModelValidationError(f"An agent is a mapping with definition, not {type(given).__name__}.")
    known = {field.name for field in fields(_Template)}
    unknown = sorted(map(str, set(given) - known))
    if unknown or "definition" not in given:
        raise ModelValidationError(
            f"An agent is a mapping with definition and possibly harness, name, instructions; wrong: "
            f"{', '.join(unknown) or 'definition is missing'}."
        )
    template = _Template(**given)
    check_agent(template.harness, template.definition)
    check_naming(template.name, template.instructions)
    return template


def _listed(server: Server | Sequence[Server]) -> tuple[Server, ...]:
    if isinstance(server, StdioServer | HttpServer | str):
        return (server,)
    if not is_list(server):
        raise ModelValidationError(
            "server is a StdioServer, an HttpServer, the name of a known server, or a list of such."
        )
    return tuple(server)
