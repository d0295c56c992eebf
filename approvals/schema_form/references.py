"""Local references and the spellings of "or null", unfolded for presentation.

Only what is shown depends on this; what is accepted is always decided by `runs.schema_check` on the original.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from approvals.schema_form.fields import Json

MAX_HOPS = 10


class NotFollowed(ValueError):
    """A reference that leads nowhere here: remote, by anchor, dangling, or too long a chain."""


def resolved(schema: Json, root: Json) -> Json:
    """`schema` with its chain of `$ref`s (and one-entry `allOf`s) laid open; keywords beside a `$ref` win.

    Raises NotFollowed.
    """
    for _ in range(MAX_HOPS):
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            target = _target(schema["$ref"], root)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
        elif isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            target = schema["allOf"][0]
            beside = {key: value for key, value in schema.items() if key != "allOf"}
        else:
            return schema
        if not isinstance(target, dict):
            raise NotFollowed
        schema = {**target, **beside}
    raise NotFollowed


def without_null(schema: dict[str, Any], root: Json) -> tuple[dict[str, Any], bool]:
    """`T or null` as (T, True), in both spellings: a type list, and anyOf/oneOf with a null branch.

    Other schemas come back as they are, with False. Raises NotFollowed.
    """
    kinds = schema.get("type")
    if isinstance(kinds, list):
        others = [kind for kind in kinds if kind != "null"]
        if len(others) == 1:
            return {**schema, "type": others[0]}, len(others) < len(kinds)
        return schema, False
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and len(branches) == 2:
            others = [branch for branch in branches if not _is_null(branch)]
            if len(others) == 1 and isinstance(opened := resolved(others[0], root), dict):
                beside = {key: value for key, value in schema.items() if key != keyword}
                return {**opened, **beside}, True
    return schema, False


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _target(reference: Json, root: Json) -> Json:
    """What a JSON pointer of the document itself (`#`, `#/$defs/address`) points to."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise NotFollowed
    found = root
    for part in reference.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key[:9]) < len(found):
            found = found[int(key[:9])]
        else:
            raise NotFollowed
    return found
