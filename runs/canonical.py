"""Canonical JSON: the one text, and the one digest, of a JSON value.

Plain module. Whatever is compared, shown and posted back as a digest (R12), or stored as
an idempotency payload (C20), goes through these two functions, so two equal values
always have the same text and two different ones never do: keys are sorted by code point, `1` and `1.0`
differ, integers are exact at any size, text is kept as it is (no `\\u` escapes beyond those JSON demands).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Path = tuple[str | int, ...]

_quoted = json.JSONEncoder(ensure_ascii=False).encode
"""Of one text. Made once: `json.dumps` makes an encoder for every value that it is asked to keep as it is."""

MAX_DEPTH = 100
"""Levels of nesting; far above any real value, far below Python's recursion limit."""


class NotJson(ValueError):
    """The value has no JSON text; `path` leads to the offending part, `message` is a sentence."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


def canonical_json(value: Any) -> str:
    """The canonical JSON text of `value`; mappings and tuples count as objects and arrays.

    Raises NotJson for NaN and infinities, keys that are not text, unpaired surrogates, nesting deeper than
    MAX_DEPTH, and types that JSON does not have.
    """
    out: list[str] = []
    _write(value, (), out)
    return "".join(out)


def digest(value: Any) -> str:
    """`sha256:<hex>` over the UTF-8 canonical JSON of `value`. Raises NotJson as `canonical_json` does."""
    return f"sha256:{hashlib.sha256(canonical_json(value).encode()).hexdigest()}"


def _write(value: Any, path: Path, out: list[str]) -> None:
    if len(path) > MAX_DEPTH:
        raise NotJson(path[:8], f"Is nested more than {MAX_DEPTH} levels deep.")
    if value is None:
        out.append("null")
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif isinstance(value, str):
        out.append(_text(value, path))
    elif isinstance(value, int):
        out.append(_integer(value))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise NotJson(path, "Must be a finite number.")
        out.append(float.__repr__(value))
    elif isinstance(value, Mapping):
        _write_object(value, path, out)
    elif isinstance(value, list | tuple):
        _write_array(value, path, out)
    else:
        raise NotJson(path, f"Has a type that JSON does not have ({type(value).__name__}).")


def _write_object(value: Mapping[Any, Any], path: Path, out: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise NotJson(path, "Has a key that is not text.")
    separator = "{"
    for key in sorted(value):
        out.append(f"{separator}{_text(key, path)}:")
        _write(value[key], (*path, key), out)
        separator = ","
    out.append("}" if value else "{}")


def _write_array(value: list[Any] | tuple[Any, ...], path: Path, out: list[str]) -> None:
    separator = "["
    for index, item in enumerate(value):
        out.append(separator)
        _write(item, (*path, index), out)
        separator = ","
    out.append("]" if value else "[]")


def _text(value: str, path: Path) -> str:
    """A JSON string; an unpaired surrogate is no character and has no UTF-8 form."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotJson(path, "Has half a character in its text (an unpaired surrogate).") from None
    return _quoted(value)


def _integer(value: int) -> str:
    """All digits. Python refuses `repr` of very long integers by default; Decimal converts them exactly."""
    try:
        return int.__repr__(value)
    except ValueError:
        return format(Decimal(value), "f")
