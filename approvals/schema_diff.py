"""What changed in the JSON Schema of a tool, argument by argument.

Plain module. Schemas come from servers: any JSON may stand anywhere, and nothing here raises because of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from runs.canonical import NotJson, canonical_json
from runs.visible import visible

MAX_ARGUMENTS: Final = 400
MAX_DEPTH: Final = 8
"""Arguments, and levels of nesting, that are looked at one by one; what lies beyond is compared as a whole."""

_HOLDERS: Final = ("properties", "items", "$defs", "definitions")
"""Keywords under which arguments stand."""

_ONLY_WORDS: Final = frozenset({"title", "description", "examples", "$comment", "deprecated", "default"})
"""Keywords that say something about a value without limiting it."""

_NAMES: Final = {
    "additionalProperties": "other arguments",
    "const": "only value",
    "enum": "allowed values",
    "exclusiveMaximum": "upper bound (exclusive)",
    "exclusiveMinimum": "lower bound (exclusive)",
    "maxItems": "most items",
    "maxLength": "longest length",
    "minItems": "fewest items",
    "minLength": "shortest length",
}

Path = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Argument:
    """One argument, or a whole schema (path ()): whether it must be sent, and its own keywords."""

    required: bool = False
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArgumentChange:
    """One change: of which argument ("" for all of them together), what about it, from what to what.

    `before` and `after` are texts fit to show, None for "not there". `limits` is whether it changes what may be
    sent, rather than what is said about it.
    """

    argument: str
    what: str
    before: str | None
    after: str | None
    limits: bool = True


PRESENCE: Final = "presence"
NEED: Final = "need"
"""`what` of an argument that was added or removed, and of one that must be sent from now on, or no longer."""


def argument_changes(before: Any, after: Any) -> tuple[ArgumentChange, ...]:
    """How two schemas differ, in the order in which the newer one (then the older) names its arguments."""
    old, new = flat(before), flat(after)
    changes: list[ArgumentChange] = []
    for path in {**new, **old}:
        changes += _of_one(argument_name(path), old.get(path), new.get(path))
    return tuple(changes)


def flat(schema: Any) -> dict[Path, Argument]:
    """Every argument of a schema by its path; the path () stands for the schema itself."""
    found: dict[Path, Argument] = {}
    _walk(schema, (), False, found)
    return found


def argument_name(path: Path) -> str:
    """How a person reads a path: `address › street`, `lines[] › price`."""
    name = ""
    for keyword, part in path:
        if keyword == "items":
            name += "[]"
        else:
            step = visible(part) if keyword == "properties" else f"{keyword} {visible(part)}"
            name += f" › {step}" if name else step
    return name


def value_text(value: Any) -> str:
    """A value as JSON with whatever hides in it written out."""
    try:
        return visible(canonical_json(value))
    except NotJson:
        pass
    try:
        return visible(json.dumps(value, sort_keys=True))
    except (ValueError, TypeError, RecursionError):
        return "(cannot be shown)"


def _walk(schema: Any, path: Path, required: bool, found: dict[Path, Argument]) -> None:
    if not isinstance(schema, Mapping):
        found[path] = Argument(required, {"schema": schema})
        return
    children = _children(schema)
    if len(path) >= MAX_DEPTH or len(found) + len(children) > MAX_ARGUMENTS:
        found[path] = Argument(required, schema)
        return
    named = {step for step in children if step[0] == "properties"}
    demanded = _demanded(schema)
    keywords = {key: held for key, held in schema.items() if not _holds(key, held)}
    if demanded is not None:
        # Said of each argument that is looked at; what remains are names that the schema does not describe.
        rest = [name for name in demanded if ("properties", name) not in named]
        keywords = {key: held for key, held in keywords.items() if key != "required"}
        keywords |= {"required": rest} if rest else {}
    found[path] = Argument(required, keywords)
    for step, child in children.items():
        _walk(child, (*path, step), step in named and step[1] in (demanded or ()), found)


def _holds(keyword: str, held: Any) -> bool:
    return keyword in _HOLDERS and isinstance(held, Mapping)


def _children(schema: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    children: dict[tuple[str, str], Any] = {}
    for keyword in _HOLDERS:
        held = schema.get(keyword)
        if not isinstance(held, Mapping):
            continue
        if keyword == "items":
            children["items", ""] = held
        else:
            children |= {(keyword, name): child for name, child in held.items()}
    return children


def _demanded(schema: Mapping[str, Any]) -> list[str] | None:
    """The names of `required`, or None where it is not a list of names and so is compared as it stands."""
    listed = schema.get("required")
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        return None
    return sorted(set(listed))


def _of_one(name: str, old: Argument | None, new: Argument | None) -> Iterable[ArgumentChange]:
    if old is None or new is None:
        yield ArgumentChange(argument=name, what=PRESENCE, before=_kind(old), after=_kind(new))
        return
    if old.required != new.required:
        yield ArgumentChange(argument=name, what=NEED, before=_need(old), after=_need(new))
    for keyword in {**new.keywords, **old.keywords}:
        before, after = _text(old.keywords, keyword), _text(new.keywords, keyword)
        if before != after:
            yield ArgumentChange(
                argument=name,
                what=_NAMES.get(keyword, visible(keyword)),
                before=before,
                after=after,
                limits=keyword not in _ONLY_WORDS,
            )


def _text(keywords: Mapping[str, Any], keyword: str) -> str | None:
    return value_text(keywords[keyword]) if keyword in keywords else None


def _kind(argument: Argument | None) -> str | None:
    """An argument that was added or removed, in full: whether it must be sent, and all that its schema says."""
    if argument is None:
        return None
    return f"{_need(argument)} {value_text(argument.keywords)}"


def _need(argument: Argument) -> str:
    return "required" if argument.required else "optional"
