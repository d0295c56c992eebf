"""Lists of a server, page by page, bounded, with bad entries set aside instead of failing the good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mcp import MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import METHOD_NOT_FOUND

from .mapping import UnacceptableError, json_size, tool_from_wire
from .sessions import Session
from .values import MAX_TOOLS, Json, ToolDefinition

MAX_PAGES = 200
MAX_LIST_BYTES = 32_000_000
"""Most JSON that one list may add up to, over all its pages."""

D = TypeVar("D")


async def list_raw(session: Session, method: str, field: str, problems: list[str]) -> list[Json]:
    """All entries of one list, unparsed, at most MAX_TOOLS. A server without that list has an empty one.

    Raises MCPError for other refusals.
    """
    entries: list[Json] = []
    size = 0
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await _page(session, method, field, cursor)
        found = page.get(field)
        if not isinstance(found, list):
            problems.append(f"The server's answer to {method} holds no list of {field}.")
            return entries
        entries += found
        size += json_size(found)
        if len(entries) > MAX_TOOLS:
            problems.append(f"The server lists more than {MAX_TOOLS} {field}; the rest was left out.")
            return entries[:MAX_TOOLS]
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return entries
        if cursor in seen or size > MAX_LIST_BYTES:
            break
        seen.add(cursor)
    problems.append(f"The server's list of {field} does not end; what came so far is kept.")
    return entries


async def _page(session: Session, method: str, field: str, cursor: str | None) -> Mapping[str, Any]:
    try:
        return await session.request(method, {} if cursor is None else {"cursor": cursor})
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:
            return {field: []}
        raise


def accepted(
    raw: Iterable[Json], parse: Callable[[Json], D], name_of: Callable[[D], str], problems: list[str]
) -> Iterator[D]:
    """The entries that parse, each name once; what is wrong with the others goes to `problems`."""
    names: set[str] = set()
    for entry in raw:
        try:
            definition = parse(entry)
        except UnacceptableError as error:
            problems.append(error.message)
            continue
        name = name_of(definition)
        if name in names:
            problems.append(f"The name “{name}” is listed twice; only the first entry is kept.")
            continue
        names.add(name)
        yield definition


def usable_tool(raw: Json, *, modern: bool) -> ToolDefinition:
    """A tool definition that a client may use on this generation. Raises UnacceptableError.

    2026-07-28 says that tools with invalid `x-mcp-header` annotations MUST be dropped.
    """
    tool = tool_from_wire(raw)
    if modern and (reason := find_invalid_x_mcp_header(tool.input_schema)) is not None:
        raise UnacceptableError(f"The tool “{tool.name}” maps arguments to HTTP headers wrongly: {reason}.")
    return tool


async def find_tool(session: Session, name: str) -> ToolDefinition | None:
    """The server's present definition of one tool, or None."""
    for raw in await list_raw(session, "tools/list", "tools", []):
        if isinstance(raw, dict) and raw.get("name") == name:
            try:
                return usable_tool(raw, modern=session.modern)
            except UnacceptableError:
                return None
    return None


def argument_headers(tool: ToolDefinition | None, arguments: Mapping[str, Json]) -> dict[str, str]:
    """The `Mcp-Param-*` headers that a modern HTTP call mirrors from its arguments."""
    if tool is None or find_invalid_x_mcp_header(tool.input_schema) is not None:
        return {}
    return mcp_param_headers(x_mcp_header_map(tool.input_schema), arguments)
