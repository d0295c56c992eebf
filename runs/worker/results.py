"""What later steps see of an MCP result. The raw result stays on the ToolCall, whole; this is its value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_VALUE_BYTES = 200_000
"""Bytes of JSON that a step's result may put into the journal; the journal is read before every step."""


def value_of(operation: str, raw: Mapping[str, Any]) -> Any:
    """Structured content if the server gave any, else the text, else the blocks; bounded."""
    if operation == "prompt":
        value: Any = raw.get("messages", [])
    elif operation == "resource":
        value = _texts(raw.get("contents", [])) or raw.get("contents", [])
    elif raw.get("structuredContent") is not None:
        value = _unwrapped(raw["structuredContent"])
    else:
        value = _texts(raw.get("content", [])) or _blocks(raw.get("content", []))
    return _bounded(value)


def error_of(raw: Mapping[str, Any]) -> str:
    """The words of a result that says it is an error."""
    return (_texts(raw.get("content", [])) or "The tool reported an error without saying which.")[:10_000]


def _unwrapped(structured: Any) -> Any:
    """SDK servers wrap a plain value as {"result": value}, because structured content must be an object."""
    if isinstance(structured, Mapping) and set(structured) == {"result"}:
        return structured["result"]
    return structured


def _texts(blocks: Any) -> str:
    """All text blocks as one text; empty if any block is not text."""
    if not isinstance(blocks, list) or not all(
        isinstance(b, Mapping) and isinstance(b.get("text"), str) for b in blocks
    ):
        return ""
    return "\n".join(block["text"] for block in blocks)


def _blocks(blocks: Any) -> Any:
    """Blocks without their binary data, which nothing in a playbook can use."""
    if not isinstance(blocks, list):
        return blocks
    return [
        {k: v for k, v in b.items() if k not in ("data", "blob")} if isinstance(b, Mapping) else b
        for b in blocks
    ]


def _bounded(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    if len(text.encode("utf-8", "replace")) <= MAX_VALUE_BYTES:
        return value
    head = value if isinstance(value, str) else text
    return {"truncated": True, "bytes": len(text), "head": head[: MAX_VALUE_BYTES // 4]}
