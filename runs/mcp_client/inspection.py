"""One look at a server: who it is, what it offers, and what is wrong with what it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from mcp_types import Implementation

from runs.errors import M3Error
from runs.schema_check import SchemaProblem, check_schema

from .clock import DeadlinePassedError, HumanClock, run_until
from .failures import failed_from, timed_out
from .listing import accepted, list_raw, usable_tool
from .mapping import MAX_NAME, clip, prompt_from_wire, resource_from_wire
from .sessions import Attempt, Session, with_session
from .values import (
    MAX_RESULT_BYTES,
    Binding,
    Failed,
    FailureCode,
    Inspection,
    Json,
    PromptDefinition,
    ResourceDefinition,
    ToolDefinition,
)

MAX_PROBLEMS = 50


class InspectionFailed(M3Error):
    """The server could not be inspected; `failed` says why (its code is in `details`)."""

    code = "server_unavailable"
    status = 502

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message, details={"reason": failed.code.value})
        self.failed = failed


async def inspect(
    binding: Binding,
    *,
    saved: Mapping[str, Json] | None = None,
    timeout: float,
    max_bytes: int = MAX_RESULT_BYTES,
) -> Inspection:
    """Connect, list everything and disconnect, within `timeout` seconds in all.

    `saved` is the `negotiated` of an earlier inspection; a saved generation that no longer fits is found out
    anew. Pass None to look without prejudice ("test connection").

    Raises InspectionFailed.
    """
    look = _Look(binding, max_bytes)
    try:
        return await run_until(look.anew_if_changed(saved), HumanClock(timeout))
    except DeadlinePassedError:
        raise InspectionFailed(timed_out(timeout, look.attempt)) from None


class _Look:
    """One inspection; it remembers its latest connection so that a failure can be explained."""

    def __init__(self, binding: Binding, max_bytes: int) -> None:
        self.binding = binding
        self.max_bytes = max_bytes
        self.attempt = Attempt(binding)

    async def anew_if_changed(self, saved: Mapping[str, Json] | None) -> Inspection:
        """Look with what was saved; if the server fails on it, look once more without."""
        if saved is None:
            return await self._once(None)
        try:
            return await self._once(saved)
        except InspectionFailed as error:
            if error.failed.code is FailureCode.UNREACHABLE:
                raise
        return await self._once(None)

    async def _once(self, saved: Mapping[str, Json] | None) -> Inspection:
        try:
            return await with_session(
                self.binding, saved, _everything, max_bytes=self.max_bytes, watch=self._watch
            )
        except Exception as error:
            failed = failed_from(error, self.attempt, max_bytes=self.max_bytes)
            if failed is None:
                raise
            raise InspectionFailed(failed) from error

    def _watch(self, attempt: Attempt) -> None:
        self.attempt = attempt


async def _everything(session: Session) -> Inspection:
    problems: list[str] = []
    tools = await _tools(session, problems)
    client = session.client
    info = client.server_info or Implementation(name="", version="")
    return Inspection(
        negotiated=session.negotiated,
        protocol_version=client.protocol_version or "",
        server_name=clip(info.title or info.name, MAX_NAME),
        server_version=clip(info.version, MAX_NAME),
        instructions=clip(client.instructions),
        tools=tools,
        prompts=await _prompts(session, problems),
        resources=await _resources(session, problems),
        problems=_some(problems),
    )


def _some(problems: list[str]) -> tuple[str, ...]:
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    return (*problems[:MAX_PROBLEMS], f"There are {len(problems) - MAX_PROBLEMS} more problems like these.")


async def _tools(session: Session, problems: list[str]) -> tuple[ToolDefinition, ...]:
    if not _offers(session, "tools"):
        return ()
    raw = await list_raw(session, "tools/list", "tools", problems)
    parse = partial(usable_tool, modern=session.modern)
    tools = tuple(accepted(raw, parse, lambda tool: tool.name, problems))
    problems += await asyncio.to_thread(_schema_problems, tools)
    return tools


def _schema_problems(tools: tuple[ToolDefinition, ...]) -> list[str]:
    """Schemas that look like schemas but cannot be checked against; their tools stay callable."""
    found: list[str] = []
    for tool in tools:
        for what, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            try:
                if schema is not None:
                    check_schema(schema)
            except SchemaProblem as error:
                found.append(
                    f"The {what} of the tool “{tool.name}” cannot be checked: {clip(error.message, 500)}"
                )
    return found


async def _prompts(session: Session, problems: list[str]) -> tuple[PromptDefinition, ...]:
    if not _offers(session, "prompts"):
        return ()
    raw = await list_raw(session, "prompts/list", "prompts", problems)
    return tuple(accepted(raw, prompt_from_wire, lambda prompt: prompt.name, problems))


async def _resources(session: Session, problems: list[str]) -> tuple[ResourceDefinition, ...]:
    if not _offers(session, "resources"):
        return ()
    found: list[ResourceDefinition] = []
    for method, field, template in (
        ("resources/list", "resources", False),
        ("resources/templates/list", "resourceTemplates", True),
    ):
        raw = await list_raw(session, method, field, problems)
        parse = partial(resource_from_wire, template=template)
        found += accepted(raw, parse, lambda resource: resource.uri, problems)
    return tuple(found)


def _offers(session: Session, what: str) -> bool:
    """Whether the server's capabilities name this list; one that declares nothing is asked all the same."""
    capabilities = session.client.server_capabilities
    if capabilities is None or not capabilities.model_dump(exclude_none=True):
        return True
    return getattr(capabilities, what) is not None
