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
        value = _texts_or_blocks(raw.get("contents", []))
    elif raw.get("structuredContent") is not None:
        value = _unwrapped(raw["structuredContent"])
    else:
        value = _texts_or_blocks(raw.get("content", []))
    return _bounded(value)


def error_of(raw: Mapping[str, Any]) -> str:
    """The words of a result that says it is an error."""
    return (_texts(raw.get("content", [])) or "The tool reported an error without saying which.")[:10_000]


def _unwrapped(structured: Any) -> Any:
    """SDK servers wrap a plain value as {"result": value}, because structured content must be an object."""
    if isinstance(structured, Mapping) and set(structured) == {"result"}:
        return structured["result"]
    return structured


def _texts_or_blocks(blocks: Any) -> Any:
    """A result that is all text is that text, even if it is empty; anything else stays blocks."""
    text = _texts(blocks)
    return _blocks(blocks) if text is None else text


def _texts(blocks: Any) -> str | None:
    """All text blocks as one text; None if there are no blocks or any is not text."""
    if not isinstance(blocks, list) or not blocks:
        return None
    if not all(isinstance(block, Mapping) and isinstance(block.get("text"), str) for block in blocks):
        return None
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
    """`value`, or the beginning of its text once its JSON has more than MAX_VALUE_BYTES bytes."""
    text = json.dumps(value, ensure_ascii=False)
    size = _size(text)
    if size <= MAX_VALUE_BYTES:
        return value
    head = (value if isinstance(value, str) else text)[: MAX_VALUE_BYTES // 4]
    # A control character takes six bytes of JSON, so a quarter of the characters may still be too much.
    if _size(json.dumps(head, ensure_ascii=False)) > MAX_VALUE_BYTES - 100:
        head = head[: MAX_VALUE_BYTES // 8]
    return {"truncated": True, "bytes": size, "head": head}


def _size(text: str) -> int:
    """Bytes of UTF-8; half a character (an unpaired surrogate) counts as one."""
    return len(text.encode("utf-8", "replace"))
