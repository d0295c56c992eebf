"""An upper estimate of how long a backtracking engine may work on a pattern, read off the pattern's shape.

Not a parser: it only needs groups, alternatives and quantifiers, and errs towards "expensive".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

UNBOUNDED = 10**18
"""The cost of patterns that can take exponential time."""

_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]?", re.DOTALL)
_GROUP = re.compile(r"\((?:\?(?:[:=!]|<[=!]|<[^>]*>|[a-z-]*:))?")
_QUANTIFIER = re.compile(r"(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??")

_MANY = 1_000
"""A counted repetition above this is left to the child process."""


@dataclass
class _Shape:
    """What matters of a pattern: `loops` repeat a varying number of times, `choices` can go two ways."""

    loops: int = 0
    choices: int = 0
    anchored: bool = False
    exponential: bool = False


@dataclass
class _Group:
    varies: bool = False


@dataclass
class _Reader:
    shape: _Shape = field(default_factory=_Shape)
    groups: list[_Group] = field(default_factory=lambda: [_Group()])
    atom_varies: bool = False


def worst_case_steps(pattern: str, length: int) -> int:
    """Steps to search `length` characters: each loop, and an unanchored start, may try every place."""
    shape = _shape(pattern)
    if shape.exponential:
        return UNBOUNDED
    tries = shape.loops + (0 if shape.anchored else 1)
    steps: int = (length + 1) ** tries * 2 ** min(shape.choices, 60) * (len(pattern) + 1)
    return min(UNBOUNDED, steps)


@lru_cache(maxsize=256)
def _shape(pattern: str) -> _Shape:
    reader = _Reader()
    reader.shape.anchored = pattern.startswith("^") and "|" not in pattern
    position = 0
    while position < len(pattern):
        position = _take(pattern, position, reader)
    return reader.shape


def _take(pattern: str, position: int, reader: _Reader) -> int:
    """Read one atom, bracket, bar or quantifier and return where the next one starts."""
    character = pattern[position]
    if character == "\\":
        return _escape(pattern, position, reader)
    if character == "[" and (found := _CLASS.match(pattern, position)):
        reader.atom_varies = False
        return found.end()
    if character == "(" and (found := _GROUP.match(pattern, position)):
        reader.groups.append(_Group())
        reader.atom_varies = False
        return found.end()
    if character == ")":
        _close(reader)
    elif character == "|":
        reader.groups[-1].varies = True
        reader.shape.choices += 1
    elif found := _QUANTIFIER.match(pattern, position):
        _quantify(found, reader)
        return found.end()
    else:
        reader.atom_varies = False
    return position + 1


def _escape(pattern: str, position: int, reader: _Reader) -> int:
    """Skip an escape; a back-reference makes matching expensive in ways this estimate does not follow."""
    following = pattern[position + 1 : position + 2]
    if following == "k" or following in tuple("123456789"):
        reader.shape.exponential = True
    reader.atom_varies = False
    return position + 2


def _close(reader: _Reader) -> None:
    if len(reader.groups) > 1:
        closed = reader.groups.pop()
        reader.groups[-1].varies |= closed.varies
        reader.atom_varies = closed.varies


def _quantify(found: re.Match[str], reader: _Reader) -> None:
    """Repeating something that itself varies is what makes backtracking exponential."""
    least, most = _bounds(found)
    repeats = most is None or most > 1
    if repeats and reader.atom_varies:
        reader.shape.exponential = True
    if max(least, most or 0) > _MANY:
        reader.shape.exponential = True
    if least != most:
        reader.groups[-1].varies = True
        reader.shape.loops += 1 if repeats else 0
        reader.shape.choices += 0 if repeats else 1
    reader.atom_varies = False


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    symbol = found.group()[0]
    if symbol != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
    least, comma, most = found.groups()
    if comma is None:
        return int(least), int(least)
    return int(least), int(most) if most else None
